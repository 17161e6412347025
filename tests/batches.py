"""Record batches as clients send them, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.wire.record_batch import BatchHeader, Record, build_batch, read_header, seal

NOW_MS = 1_750_000_000_000
BODY_AT = 61


def records(count: int, *, size: int = 10, timestamp: int = NOW_MS, first: int = 0) -> list[Record]:
    """Records that tell their place, a millisecond apart."""
    return [
        Record(number, timestamp + number, b"key-%d" % number, b"%d." % (first + number) + b"x" * size)
        for number in range(count)
    ]


def batch(
    count: int = 1,
    *,
    size: int = 10,
    timestamp: int = NOW_MS,
    first: int = 0,
    codec: int = 0,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    contents: Sequence[Record] | None = None,
) -> bytes:
    """Returns a batch at base offset 0; `first` is the number in its first value."""
    return build_batch(
        contents if contents is not None else records(count, size=size, timestamp=timestamp, first=first),
        attributes=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def resealed(data: bytes, **changes: int) -> bytes:
    """Returns the batch with changed fields in its header, and the CRC for them."""
    return seal(read_header(data)._replace(**changes), data[BODY_AT:])


def header(data: bytes) -> BatchHeader:
    return read_header(data)
