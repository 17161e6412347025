"""Batches with a right CRC that lie about their insides: some by name, and any number from a seed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from random import Random
from typing import Any

import cramjam

from strandline.wire import compression
from strandline.wire.record_batch import HEADER_BYTES, BatchHeader, encode_record, read_header, seal, varint
from tests.batches import NOW_MS, batch, resealed

CODECS = (compression.NONE, compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD)


def of_body(body: bytes, count: int, *, codec: int = 0, is_compressed: bool = False, **changes: int) -> bytes:
    """Returns a batch with these bytes as its records, which are compressed here unless they are already."""
    if codec and not is_compressed:
        body = compression.compress(codec, body)
    header = BatchHeader(
        base_offset=0,
        length=HEADER_BYTES - 12 + len(body),
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=codec,
        last_offset_delta=count - 1,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )
    return seal(header._replace(**changes), body)


def framed(fields: bytes) -> bytes:
    return varint(len(fields)) + fields


def fields(
    *,
    timestamp: bytes = b"\0",
    offset: bytes = b"\0",
    key: bytes = b"\2k",
    value: bytes = b"\2v",
    headers: bytes = b"\0",
) -> bytes:
    return b"\0" + timestamp + offset + key + value + headers


def lies(codec: int) -> dict[str, bytes]:
    """Batches that break one rule each, whose stream is whole."""

    def made(body: bytes, count: int = 1, **changes: int) -> bytes:
        return of_body(body, count, codec=codec, **changes)

    good = framed(fields())
    second = framed(fields(offset=b"\2"))
    return {
        "random bytes as records": made(bytes(Random(1).randbytes(70))),
        "count 2 with one record": made(good, 2),
        "count 1 with two records": made(good + second, 1),
        "largest count with one record": made(good, 2**31 - 1),
        "no records at all": made(b"", 1),
        "bytes after the last record": made(good + b"\0"),
        "negative record length": made(varint(-5) + fields()),
        "record length too large": made(varint(400) + fields()),
        "record length too small": made(varint(len(fields()) - 1) + fields()),
        "empty record": made(b"\0"),
        "key longer than the record": made(framed(fields(key=varint(300) + b"k"))),
        "value longer than the record": made(framed(fields(value=varint(300) + b"v"))),
        "negative header count": made(framed(fields(headers=varint(-1)))),
        "header count too large": made(framed(fields(headers=varint(1000)))),
        "header without a key": made(framed(fields(headers=varint(1) + varint(-1) + b"\2v"))),
        "header key too long": made(framed(fields(headers=varint(1) + varint(90) + b"k\0"))),
        "varint of six bytes": made(framed(fields(offset=b"\x80\x80\x80\x80\x80\0"))),
        "varlong of eleven bytes": made(framed(fields(timestamp=b"\x80" * 10 + b"\0"))),
        "offset deltas all 0": made(good * 3, 3),
        "offset deltas descend": made(second + good, 2),
        "offset delta beyond the batch": made(framed(fields(offset=varint(9)))),
        "negative offset delta": made(framed(fields(offset=varint(-1)))),
    }


def stricter_than_kafka(codec: int) -> dict[str, bytes]:
    """Batches that Apache Kafka takes, or takes in some codecs, and that some client cannot read."""

    def made(body: bytes, count: int = 1, **changes: int) -> bytes:
        return of_body(body, count, codec=codec, **changes)

    return {
        "key length of -2": made(framed(fields(key=varint(-2)))),
        "varint beyond 32 bits": made(framed(fields(offset=b"\x80\x80\x80\x80\x70"))),
        "timestamp beyond 64 bits": made(framed(fields(timestamp=varint(2**63 - 1)))),
    }


def broken_streams() -> dict[str, bytes]:
    """Batches whose codec's stream is junk, cut off, or followed by something."""
    good = framed(fields())
    found: dict[str, bytes] = {}
    for codec in CODECS[1:]:
        name = compression.NAMES[codec]
        stream = compression.compress(codec, good)
        made: Callable[[bytes], bytes] = lambda body, codec=codec: of_body(  # type: ignore[misc]  # noqa: E731
            body, 1, codec=codec, is_compressed=True
        )
        found[f"{name}: junk"] = made(Random(2).randbytes(60))
        found[f"{name}: nothing"] = made(b"")
        found[f"{name}: cut off"] = made(stream[:-1])
        found[f"{name}: cut in the middle"] = made(stream[: len(stream) // 2])
        found[f"{name}: something after it"] = made(stream + b"junk")
    linked = cramjam.lz4.Compressor(level=9, content_checksum=False, block_linked=True)
    linked.compress(good)
    found["lz4: linked blocks"] = of_body(
        bytes(linked.finish()), 1, codec=compression.LZ4, is_compressed=True
    )
    found["snappy: a block that claims 90 MB"] = of_body(
        b"\x80\x80\x80\x2d\0a", 1, codec=compression.SNAPPY, is_compressed=True
    )
    found["a codec that does not exist"] = of_body(good, 1, codec=5, is_compressed=True)
    return found


def bomb_of_bytes(megabytes: int) -> bytes:
    """Returns a small gzip batch of one record with a value of so many megabytes of zeros."""
    size = megabytes * 1024 * 1024
    rest = b"\0\0\0\1" + varint(size)
    body = gzip.compress(varint(len(rest) + size + 1) + rest + bytes(size + 1), 6)
    return of_body(body, 1, codec=compression.GZIP, is_compressed=True)


def bomb_of_records(count: int, *, ascending: bool) -> bytes:
    """Returns a small gzip batch of so many records of a few bytes."""
    if ascending:
        body = b"".join(encode_record(number, 0, None, b"") for number in range(count))
    else:
        body = encode_record(0, 0, None, b"") * count
    return of_body(gzip.compress(body, 6), count, codec=compression.GZIP, is_compressed=True)


def _some_batch(random: Random) -> bytes:
    codec = random.choice(CODECS)
    return batch(random.choice((1, 1, 2, 3, 20)), size=random.choice((0, 10, 60, 300)), codec=codec)


def mutated(random: Random) -> bytes:
    """Returns a batch with some changed bytes in its records or its stream, or changed fields in its header."""
    data = _some_batch(random)
    header = read_header(data)
    kind = random.randrange(5)
    if kind == 0:
        name, value = random.choice(_HEADER_CHANGES)(random, header)
        return resealed(data, **{name: value})
    body = data[HEADER_BYTES:]
    inflated = compression.decompress(header.codec, body) if header.codec else body
    if kind == 1 and header.codec:
        body = _changed_bytes(random, body)
    elif kind == 4:
        return data
    else:
        body = _changed_bytes(random, inflated)
        body = compression.compress(header.codec, body) if header.codec else body
    return seal(header._replace(length=HEADER_BYTES - 12 + len(body)), body)


def _changed_bytes(random: Random, body: bytes) -> bytes:
    out = bytearray(body)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = random.randrange(len(out)) if out else 0
        action = random.randrange(5)
        if action == 0 and out:
            out[at] = random.randrange(256)
        elif action == 1 and out:
            out[at] ^= 1 << random.randrange(8)
        elif action == 2:
            out[at:at] = random.randbytes(random.choice((1, 2, 5)))
        elif action == 3:
            del out[at : at + random.choice((1, 2, 8))]
        elif out:
            out[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
    return bytes(out)


_Change = Callable[[Random, BatchHeader], tuple[str, Any]]
_HEADER_CHANGES: tuple[_Change, ...] = (
    lambda random, header: ("record_count", random.choice((-1, 0, header.record_count + 1, 2**31 - 1))),
    lambda random, header: (
        "last_offset_delta",
        random.choice((-1, header.last_offset_delta + 1, 2**31 - 1)),
    ),
    lambda random, header: ("base_timestamp", random.choice((0, -1, 2**63 - 1, -(2**63)))),
    lambda random, header: ("max_timestamp", random.choice((0, -1, 2**63 - 1))),
    lambda random, header: ("attributes", random.randrange(8)),
)
