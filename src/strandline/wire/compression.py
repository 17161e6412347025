"""The five codecs of a record batch, by the number in its attributes.

Framing follows Apache Kafka's clients: gzip members, snappy in xerial's chunk framing (plain snappy is accepted),
lz4 frames with independent blocks (Java refuses linked ones), zstd frames.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final

from strandline.base.buffers import Buffer

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
CODES: Final = {name: code for code, name in enumerate(NAMES)}

# The largest inflated size of a batch. Kafka has no such limit; a batch of 1 MB that inflates to more is an attack on
# memory.
DECOMPRESSED_BYTES_MAX: Final = 256 * 1024 * 1024

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_MAGIC: Final = _XERIAL_HEADER[:8]
_XERIAL_CHUNK_BYTES: Final = 32 * 1024
# Three bytes of snappy copy 64 bytes at most: a block that announces more is wrong, and must not get memory.
_SNAPPY_RATIO_MAX: Final = 22

# A zstd frame need not have its inflated size; Java's frames do not. Then this size is tried first: memory beyond a
# megabyte comes from the system each time, so larger frames should not get more than they are likely to need.
_UNSAID_BYTES: Final = 64 * 1024
_UNSAID_RATIO: Final = 32
_UNSAID_LARGE: Final = 1024 * 1024
_UNSAID_RATIO_LARGE: Final = 10

# The message of the codecs for a full buffer; any other error is caused by the data.
_NO_ROOM: Final = "failed to write whole buffer"

# Kafka's defaults for compression.gzip.level (-1 means zlib's 6), lz4.level and zstd.level.
DEFAULT_LEVELS: Final = {GZIP: 6, LZ4: 9, ZSTD: 3}


# The zstd decoders. A thread takes one out of the list, because two threads must not use it at a time.
_free_decoders: list[Any] = []


class CompressionError(ValueError):
    """Bytes that do not decompress with the codec that the batch names."""


class TooManyBytes(CompressionError):
    """A stream that inflates to more than the allowed bytes."""


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    import cramjam  # imported on first use: a broker that recompresses nothing never needs it

    if codec == NONE:
        return bytes(data)
    if codec == SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec not in DEFAULT_LEVELS:
        raise CompressionError(f"unknown compression codec {codec}")
    if level is None:
        level = DEFAULT_LEVELS[codec]
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data, level=6 if level < 0 else level))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=level))
    stream = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    stream.compress(data)
    return bytes(stream.finish())


def decompress(codec: int, data: Buffer, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    import cramjam

    if codec == NONE:
        return bytes(data)
    try:
        if codec == SNAPPY:
            return _decompress_snappy(memoryview(data), bytes_max)
        if codec == ZSTD:
            found = _decompress_zstd(data, bytes_max)
            if found is not None:
                return found
        if codec in DEFAULT_LEVELS:
            return _decompress_bounded(getattr(cramjam, NAMES[codec]), data, bytes_max)
        raise CompressionError(f"unknown compression codec {codec}")
    except (cramjam.DecompressionError, struct.error, OSError) as error:
        raise CompressionError(f"{NAMES[codec] if codec < len(NAMES) else codec}: {error}") from error


def _decompress_zstd(data: Buffer, bytes_max: int) -> bytes | None:
    """Inflates one frame with a decoder that is reused for the next (ADR 27). Returns None if the package is not
    installed or cannot inflate the frame: then cramjam tries, and raises the error."""
    zstandard = _zstandard()
    if zstandard is None:
        return None
    try:
        decoder = _free_decoders.pop()
    except IndexError:
        decoder = zstandard.ZstdDecompressor()
    try:
        size = zstandard.frame_content_size(data)
        if size > bytes_max:
            return None
        if size < 0:
            if not _is_one_frame(zstandard, memoryview(data)):
                return None
            large = max(_UNSAID_LARGE, _UNSAID_RATIO_LARGE * len(data))
            size = min(bytes_max, _UNSAID_BYTES + min(_UNSAID_RATIO * len(data), large))
        found: bytes = decoder.decompress(data, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError:
        return None
    finally:
        _free_decoders.append(decoder)
    return found


def _is_one_frame(zstandard: Any, data: memoryview) -> bool:
    """Returns True if nothing follows the first frame. Decoders know that only for frames with a size, so this follows
    the blocks (RFC 8878, section 3.1.1)."""
    position = zstandard.frame_header_size(data)
    while position < len(data):
        block = int.from_bytes(data[position : position + 3], "little")
        is_last, is_one_byte, size = block & 1, (block >> 1) & 3 == 1, block >> 3
        position += 3 + (1 if is_one_byte else size)
        if is_last:
            return bool(position + 4 * zstandard.get_frame_parameters(data).has_checksum == len(data))
    return False


@cache
def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        return None
    return zstandard


def _decompress_bounded(module: Any, data: Buffer, bytes_max: int) -> bytes:
    """Inflates into a buffer of a likely size first, and then into larger ones as long as the buffer is full."""
    import cramjam

    size = min(bytes_max, 64 * 1024 + 8 * len(data))
    while True:
        room = bytearray(size)
        try:
            return bytes(memoryview(room)[: module.decompress_into(data, room)])
        except (cramjam.DecompressionError, OSError) as error:
            if _NO_ROOM not in str(error):
                raise
            if size == bytes_max:
                raise TooManyBytes(f"more than {bytes_max} bytes") from error
        size = min(bytes_max, size * 8)


def _compress_xerial(data: memoryview) -> bytes:
    import cramjam

    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_CHUNK_BYTES):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_CHUNK_BYTES])
        out += struct.pack(">i", len(block))
        out += block
    return bytes(out)


def _decompress_snappy(data: memoryview, bytes_max: int) -> bytes:
    import cramjam

    if bytes(data[:8]) != _XERIAL_MAGIC:
        return _decompress_raw_snappy(cramjam, data, bytes_max)
    out = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise CompressionError(f"snappy: a block of {size} bytes with {len(data) - position} left")
        out += _decompress_raw_snappy(cramjam, data[position : position + size], bytes_max - len(out))
        position += size
    return bytes(out)


def _decompress_raw_snappy(cramjam: object, block: memoryview, bytes_max: int) -> bytes:
    snappy = cramjam.snappy  # type: ignore[attr-defined]
    size = snappy.decompress_raw_len(block)
    if size > _SNAPPY_RATIO_MAX * (len(block) + 1):
        raise CompressionError(f"snappy: {len(block)} bytes cannot inflate to {size}")
    if size > bytes_max:
        raise TooManyBytes(f"snappy: a block of {size} bytes where {bytes_max} are allowed")
    return bytes(snappy.decompress_raw(block))
