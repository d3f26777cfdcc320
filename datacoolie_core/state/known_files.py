"""Files that are loaded, remembered as sixteen bytes each: eight of the path, eight of the content."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacoolie_core.storage import FileInfo

_HALF = 8
Kind = Literal["new", "known", "changed"]


@dataclass(frozen=True)
class KnownFiles:
    """Which files are loaded, and in which version each.

    Attributes:
        versions: Digest of a file's path → digest of its size and time.
    """

    versions: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])

    def kind_of(self, path: str, info: FileInfo) -> Kind:
        """Return whether a file is new, loaded as it is, or loaded when it was another.

        Args:
            path: Relative to the source's folder.
            info: Its size and time.
        """
        version = self.versions.get(_digest(path))
        if version is None:
            return "new"
        return "known" if version == _version(info) else "changed"

    def with_files(self, files: Iterable[tuple[str, FileInfo]]) -> KnownFiles:
        """Return the same and more files, by path."""
        added = {_digest(path): _version(info) for path, info in files}
        return KnownFiles({**self.versions, **added})

    def to_bytes(self) -> bytes:
        """Return the digests, sorted: equal sets give equal bytes."""
        return b"".join(path + version for path, version in sorted(self.versions.items()))

    def to_text(self) -> str:
        """Return `to_bytes` as text."""
        return base64.b64encode(self.to_bytes()).decode("ascii")

    @staticmethod
    def from_bytes(content: bytes) -> KnownFiles:
        """Return what `to_bytes` gave.

        Raises:
            ValueError: The bytes are cut.
        """
        if len(content) % (2 * _HALF):
            raise ValueError(f"{len(content)} bytes are no whole digests")
        pairs = (content[at : at + 2 * _HALF] for at in range(0, len(content), 2 * _HALF))
        return KnownFiles({pair[:_HALF]: pair[_HALF:] for pair in pairs})

    @staticmethod
    def from_text(text: str) -> KnownFiles:
        """Return what `to_text` gave.

        Raises:
            ValueError: It is something else.
        """
        return KnownFiles.from_bytes(base64.b64decode(text, validate=True))


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_HALF).digest()


def _version(info: FileInfo) -> bytes:
    return _digest(f"{info.size}|{info.modified_at.isoformat()}")
