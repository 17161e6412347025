"""The records the compatibility tests write: every shape that Kafka's record format allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.record_times import recent_ms

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

BASE_TIMESTAMP_MS = recent_ms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A record as an application sees it. Without a timestamp the client chooses one."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where a broker put a record, as its client reports it."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    offset: int
    sample: Sample


def _at_distinct_times(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    return tuple(
        replace(sample, timestamp_ms=BASE_TIMESTAMP_MS + 1000 * index) for index, sample in enumerate(samples)
    )


EVERY_SHAPE = _at_distinct_times(
    (
        Sample(key=b"key", value=b"value"),
        Sample(key=None, value=b"a null key"),
        Sample(key=b"", value=b"an empty key"),
        Sample(key=b"tombstone", value=None),
        Sample(key=b"empty value", value=b""),
        Sample(key=None, value=None),
        Sample(key=b"bytes", value=bytes(range(256))),
        Sample(key=b"compressible", value=b"strandline " * 1000),
        Sample(key=b"one header", value=b"v", headers=(("name", b"value"),)),
        Sample(key=b"null header value", value=b"v", headers=(("null", None),)),
        Sample(key=b"empty header value", value=b"v", headers=(("empty", b""),)),
        Sample(key=b"duplicate header keys", value=b"v", headers=(("a", b"1"), ("b", b"2"), ("a", b"3"))),
        Sample(key=b"headers of a tombstone", value=None, headers=(("why", b"deleted"),)),
        Sample(key=b"header key beyond ASCII", value=b"v", headers=(("größe", bytes(range(256))),)),
    )
)


def numbered(count: int, *, size: int = 20) -> tuple[Sample, ...]:
    """Small records that tell their place, spread over 17 keys."""
    return tuple(
        Sample(
            key=f"key-{index % 17}".encode(),
            value=f"{index:08d}".encode().ljust(size, b"."),
            timestamp_ms=BASE_TIMESTAMP_MS + index,
        )
        for index in range(count)
    )
