"""Names and identities: ids from names, and which place a source or destination is."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid5

from datacoolie_core.secrets import Secret

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Destination, Source

NAMESPACE = UUID("da7ac001-e000-4000-8000-000000000000")
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "local": "file"}
"""Other spellings of the same scheme."""


@lru_cache(maxsize=1 << 15)
def id_from_name(name: str) -> str:
    """Return the id that the format derives from a name (UUIDv5 in the peer's namespace).

    >>> id_from_name("orders")
    '7172410a-6350-5482-b4a1-c584648f28f7'
    """
    return str(uuid5(NAMESPACE, name))


def fill_id(data: dict[str, Any], key: str) -> None:
    """Set a missing or blank id from the name, where there is one."""
    given, name = data.get(key), data.get("name")
    blank = given is None or (isinstance(given, str) and not given.strip())
    if blank and isinstance(name, str) and name.strip():
        data[key] = id_from_name(name.strip())


def table_path(end: Source | Destination) -> str | None:
    """Return ``base_path/schema_name/table`` as written (relative paths stay relative).

    A source without a table reads the base path itself. None when the connection has no base
    path, or a query says what is read.
    """
    given = cast("object", end.connection.configure.base_path)
    base = given.reveal() if isinstance(given, Secret) else given
    if not isinstance(base, str) or (end.table is None and getattr(end, "query", None)):
        return None
    parts = [part.replace("\\", "/").strip("/") for part in (end.schema_name, end.table) if part]
    return "/".join([base.replace("\\", "/").rstrip("/"), *parts])


def destination_identity(end: Source | Destination) -> str | None:
    """Return the one identity of a physical table: catalog-qualified name, else its path.

    Fan-in, locks, maintenance and lineage all use this function.
    """
    connection = end.connection
    if connection.catalog:
        names = (connection.catalog, connection.database, end.schema_name, end.table)
        return "table:" + ".".join(name for name in names if name)
    path = table_path(end)
    return None if path is None else _one_spelling(path)


def _one_spelling(path: str) -> str:
    scheme, separator, rest = path.rpartition("://")
    scheme = _SCHEMES.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        scheme, separator = "", ""
    root = "/" if rest.startswith("/") and not separator else ""
    kept: list[str] = []
    for part in rest.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    return f"{scheme}{separator}{root}{'/'.join(kept)}"
