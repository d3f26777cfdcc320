"""What a path means: joining, resolving against the project root, one spelling per place."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from datacoolie_core.errors import StorageError

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")
_LOCAL_SCHEMES = frozenset({"file", "local"})


def scheme_of(uri: str) -> str | None:
    """Return the scheme of a URI in lower case, None for a plain path."""
    found = _SCHEME.match(uri)
    return found.group(1).lower() if found else None


def is_remote(uri: str) -> bool:
    """Return whether a URI is anything but a path on this machine.

    >>> is_remote("s3://bucket/lake"), is_remote("lake/orders"), is_remote("file:///lake")
    (True, False, False)
    """
    scheme = scheme_of(uri)
    return scheme is not None and scheme not in _LOCAL_SCHEMES


def local_path(uri: str) -> Path:
    """Return the path on this machine that a plain path or a ``file://`` URI names."""
    if scheme_of(uri) is None:
        return Path(uri)
    rest = _SCHEME.sub("", uri, count=1)
    authority, _, path = rest.partition("/")
    if authority not in {"", "localhost"}:
        raise StorageError(
            f"'{authority}' is taken as the name of another machine",
            place=uri,
            remedy=f"Write file:///{rest} for an absolute path, or a plain path.",
            code="bad_path",
        )
    return Path("/" + unquote(path))


def join(base: str, *parts: str) -> str:
    """Join a base path or URI and parts with single slashes.

    >>> join("s3://bucket/lake/", "/bronze/", "orders")
    's3://bucket/lake/bronze/orders'
    """
    clean = [part.strip("/") for part in parts]
    root = base if base.endswith("://") else (base.rstrip("/") or "/")
    tail = "/".join(part for part in clean if part)
    if not tail:
        return root
    return f"{root}{tail}" if root.endswith("/") else f"{root}/{tail}"


def resolve(path: str, project_dir: str | Path) -> str:
    """Return the one spelling of a path: absolute, or a URI.

    Relative paths are relative to the project root, which may be a URI itself. ``file://`` URIs
    become plain paths; ``.``, double and trailing slashes go. Nothing is read, so a symbolic link
    stays as it is.

    Args:
        path: As it is written in the metadata or in a setting.
        project_dir: The project root.
    """
    if is_remote(path):
        return _normalised_uri(path)
    if scheme_of(path) is not None:
        return os.path.normpath(local_path(path))
    root = str(project_dir)
    if not Path(path).is_absolute() and is_remote(root):
        return _normalised_uri(join(root, path))
    base = local_path(root).absolute()
    return os.path.normpath(base / path)


def _normalised_uri(uri: str) -> str:
    scheme = scheme_of(uri) or ""
    rest = _SCHEME.sub("", uri, count=1)
    if scheme.startswith("http"):
        return f"{scheme}://{rest}"
    kept: list[str] = []
    for part in rest.split("/"):
        if part in {"", "."}:
            continue
        if part == ".." and len(kept) > 1:
            kept.pop()
        else:
            kept.append(part)
    root = "/" if rest.startswith("/") and scheme != "memory" else ""
    return f"{scheme}://{root}{'/'.join(kept)}"
