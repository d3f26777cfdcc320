"""Avro container files block by block: header, unpacked blocks, and small files made of them."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAGIC = b"Obj\x01"
_SYNC = 16
_MOST = 1 << 31


class AvroTrouble(ValueError):  # noqa: N818 - it never reaches a user
    """The bytes are no whole Avro file."""


@dataclass(frozen=True)
class Container:
    """The header of an Avro file.

    Attributes:
        schema: As written: a name, a list (a union) or an object.
        codec: How the blocks are packed.
        sync: What ends each block.
    """

    schema: Any
    codec: str
    sync: bytes


def read_container(raw: IO[bytes]) -> Container | None:
    """Return a file's header, None for a file of no bytes; the blocks follow it.

    Raises:
        AvroTrouble: It is no Avro file.
    """
    magic = raw.read(len(_MAGIC))
    if not magic:
        return None
    if magic != _MAGIC:
        raise AvroTrouble("it does not start as an Avro file does")
    meta: dict[str, bytes] = {}
    while count := _long(raw):
        if count < 0:
            _long(raw)  # the size of what follows, for those who skip it
        for _ in range(abs(count)):
            name = _exactly(raw, _long(raw)).decode()
            meta[name] = _exactly(raw, _long(raw))
    try:
        schema = json.loads(meta["avro.schema"])
    except (KeyError, ValueError) as error:
        raise AvroTrouble("its header has no schema") from error
    return Container(schema, meta.get("avro.codec", b"null").decode(), _exactly(raw, _SYNC))


def blocks(raw: IO[bytes], container: Container) -> Iterator[tuple[int, bytes]]:
    """Return the number of records and the unpacked bytes of each block.

    Raises:
        AvroTrouble: A block is cut or damaged, or packed in a way that nobody here unpacks.
    """
    unpack = _unpacker(container.codec)
    while (count := _long_or_end(raw)) is not None:
        packed = _exactly(raw, _long(raw))
        if _exactly(raw, _SYNC) != container.sync:
            raise AvroTrouble("a block does not end where its header says")
        try:
            yield count, unpack(packed)
        except AvroTrouble:
            raise
        except Exception as error:
            raise AvroTrouble(f"a block can't be unpacked ({container.codec}): {error}") from error


def small_file(schema: Any, parts: list[tuple[int, bytes]]) -> bytes:
    """Return blocks as an Avro file that is not packed.

    Args:
        schema: What its header shall say.
        parts: Number of records and unpacked bytes.
    """
    sync = bytes(_SYNC)
    written = json.dumps(schema).encode()
    meta = [(b"avro.schema", written), (b"avro.codec", b"null")]
    head = [_MAGIC, _as_long(len(meta))]
    for name, value in meta:
        head += [_as_long(len(name)), name, _as_long(len(value)), value]
    body = [piece for part in parts for piece in (*_framed(part), sync)]
    return b"".join([*head, _as_long(0), sync, *body])


def _framed(part: tuple[int, bytes]) -> tuple[bytes, bytes, bytes]:
    count, data = part
    return _as_long(count), _as_long(len(data)), data


def _exactly(raw: IO[bytes], size: int) -> bytes:
    if not 0 <= size < _MOST:
        raise AvroTrouble("a length in it makes no sense")
    data = raw.read(size)
    if len(data) < size:
        raise AvroTrouble("it ends in the middle of a block")
    return data


def _long(raw: IO[bytes]) -> int:
    value = _long_or_end(raw)
    if value is None:
        raise AvroTrouble("it ends in the middle of a block")
    return value


def _long_or_end(raw: IO[bytes]) -> int | None:
    """Return a number in Avro's zig-zag form, None at the end of the file."""
    shift = value = 0
    while byte := raw.read(1):
        value |= (byte[0] & 127) << shift
        shift += 7
        if not byte[0] & 128:
            return (value >> 1) ^ -(value & 1)
        if shift > 63:
            raise AvroTrouble("a number in it is too long")
    if shift:
        raise AvroTrouble("it ends in the middle of a block")
    return None


def _as_long(value: int) -> bytes:
    left = value << 1
    written = bytearray()
    while left > 127:
        written.append((left & 127) | 128)
        left >>= 7
    written.append(left)
    return bytes(written)


def _unpacker(codec: str) -> Callable[[bytes], bytes]:
    known: dict[str, Callable[[bytes], bytes]] = {
        "null": bytes,
        "deflate": lambda data: zlib.decompress(data, -zlib.MAX_WBITS),
        "snappy": _snappy,
        "zstandard": _zstandard,
        "bzip2": _bzip2,
        "xz": _xz,
    }
    if codec not in known:
        raise AvroTrouble(f"it is packed with '{codec}'; known are {', '.join(known)}")
    return known[codec]


def _snappy(data: bytes) -> bytes:
    import pyarrow as pa

    library = cast("Any", pa)
    # the length stands in front of the packed bytes, their checksum behind
    shift = size = 0
    for byte in data:
        size |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            break
    plain = library.decompress(data[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(plain) != int.from_bytes(data[-4:]):
        raise AvroTrouble("the checksum of a block is wrong")
    return cast("bytes", plain)


def _zstandard(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def _bzip2(data: bytes) -> bytes:
    import bz2

    return bz2.decompress(data)


def _xz(data: bytes) -> bytes:
    import lzma

    return lzma.decompress(data)
