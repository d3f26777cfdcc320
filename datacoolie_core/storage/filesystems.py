"""The fsspec file system behind a URI, and what its errors mean for a reader."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

from datacoolie_core.errors import MissingPathError, StorageError
from datacoolie_core.storage.locations import scheme_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_DISK_TROUBLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_S3_OPTIONS = {
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_endpoint_url": "endpoint_url",
}


class _FileSystem(Protocol):
    """The part of fsspec's file system that we use; none of it expands patterns."""

    def exists(self, path: str) -> bool: ...
    def isfile(self, path: str) -> bool: ...
    def cat_file(self, path: str) -> bytes: ...
    def pipe_file(self, path: str, value: bytes, **options: Any) -> None: ...
    def rm_file(self, path: str) -> None: ...
    def get_file(self, rpath: str, lpath: str) -> None: ...
    def put_file(self, lpath: str, rpath: str) -> None: ...
    def find(
        self, path: str, *, maxdepth: int | None, detail: bool
    ) -> dict[str, dict[str, Any]]: ...
    def ls(self, path: str, *, detail: bool) -> list[dict[str, Any]]: ...
    def info(self, path: str) -> dict[str, Any]: ...
    def invalidate_cache(self) -> None: ...


def filesystem(uri: str, storage_options: Mapping[str, Any] | None) -> tuple[_FileSystem, str]:
    """Return the file system of a remote URI and the path inside it.

    Args:
        uri: A URI with a scheme.
        storage_options: Options of the connection, in Delta's or fsspec's names.

    Raises:
        StorageError: The scheme is unknown, or its package is not installed.
    """
    import fsspec  # costs 0.2 s, and a project on a local disk never needs it

    scheme = scheme_of(uri) or "file"
    options = _fsspec_options(scheme, storage_options or {})
    try:
        system = fsspec.filesystem(scheme, **options)  # pyright: ignore[reportUnknownMemberType]
    except (ImportError, ValueError) as error:
        raise StorageError(
            f"no file system for '{scheme}://': {error}",
            place=uri,
            remedy="Install the fsspec package of this scheme, or correct the path.",
            code="unknown_scheme",
        ) from error
    # fsspec's public way to this, url_to_fs, gives "::" inside a name a meaning of its own
    path = cast("str", system._strip_protocol(uri))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
    typed = cast("_FileSystem", system)
    # another process may have written since this one listed
    typed.invalidate_cache()
    return typed, path


def _fsspec_options(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    if scheme not in {"s3", "s3a"}:
        return dict(options)
    translated: dict[str, Any] = {}
    for key, value in options.items():
        lowered = key.lower()
        if lowered == "aws_region":
            translated["client_kwargs"] = {"region_name": value}
        elif lowered in _S3_OPTIONS:
            translated[_S3_OPTIONS[lowered]] = value
        elif not lowered.startswith("aws_"):
            translated[key] = value
    return translated


@contextmanager
def explained(uri: str, action: str) -> Generator[None]:
    """Turn what the operating system or a store says into an error that names path and remedy.

    Args:
        uri: The path, as the caller knows it.
        action: A verb for the message: ``read``, ``write``, ``list``, ``delete``.
    """
    try:
        yield
    except OSError as error:
        raise _story(error, uri, action) from error


def _story(error: OSError, uri: str, action: str) -> StorageError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MissingPathError(
            f"can't {action}: there is no such file or folder",
            place=uri,
            remedy="Check the path and the base path; relative paths start at the project root.",
        )
    if isinstance(error, PermissionError):
        return StorageError(
            f"can't {action}: permission denied",
            place=uri,
            remedy="Give this user access to the path, or correct the credentials.",
            code="permission_denied",
        )
    if isinstance(error, IsADirectoryError):
        return StorageError(
            f"can't {action}: it is a folder",
            place=uri,
            remedy="Name a file.",
            code="is_a_folder",
        )
    if error.errno in _DISK_TROUBLE:
        return StorageError(
            f"can't {action}: {error.strerror}",
            place=uri,
            remedy="Free some space, or choose another place.",
            code="disk_full",
        )
    reason = error.strerror or str(error) or type(error).__name__
    return StorageError(
        f"can't {action}: {reason}",
        place=uri,
        remedy="Check that the storage answers.",
        retryable=True,
    )
