"""Records of every shape pass the source and the exactly-once sink unchanged: null, empty, binary, ten megabytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from strandline.client.sync import Admin, Producer
from strandline.spark import exactly_once, write_atomically
from tests.spark.topics import rows_of

MEGABYTES_10 = 10_000_000
LARGE = {"max.message.bytes": "11000000"}
QUERY_SECONDS_MAX = 120

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]

# Null and empty are different things; what is no UTF-8 and no JSON is none of the source's business.
POISON: list[Record] = [
    (None, None, []),
    (None, b"", []),
    (b"", None, []),
    (b"", b"", [("", b"")]),
    (b"\xff\x00\xfe", b"\x80" * 3, [("n", None), ("n", b"\xff")]),
    (b"truncated", b'{"order": 1, "amount": ', []),
    (b"large", bytes(range(256)) * (MEGABYTES_10 // 256), [("large", b"x" * 1000)]),
]


def query(
    spark: Any, bootstrap: str, source: str, target: str, place: Path, where: str = "true"
) -> list[int]:
    """Copies what is in the source; the number of rows that each batch read."""
    stream = (
        spark.readStream.format("strandline")
        .option("kafka.bootstrap.servers", bootstrap)
        .options(subscribe=source, startingOffsets="earliest", includeHeaders="true")
        .load()
        .where(where)
        .select("key", "value", "headers")
    )
    large = {"max.request.size": "11000000"}
    started = (
        exactly_once(stream, bootstrap, topic=target, settings=large)
        .option("checkpointLocation", str(place))
        .trigger(availableNow=True)
        .start()
    )
    assert started.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
    return [each.numInputRows for each in started.recentProgress if each.numInputRows]


def contents(bootstrap: str, topic: str) -> list[Record]:
    return [(row.key, row.value, list(row.headers)) for row in rows_of(bootstrap, topic, 1)]


def test_poison_passes_unchanged(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    source, target = f"{topic}-in", f"{topic}-out"
    for name in (source, target):
        admin.create_topic(name, partitions=1, configs=LARGE)
    with Producer(bootstrap_servers=bootstrap, max_request_size=11_000_000) as producer:
        for key, value, headers in POISON:
            producer.send_and_wait(source, value, key, headers=headers)
    assert query(spark, bootstrap, source, target, tmp_path) == [len(POISON)]
    assert contents(bootstrap, target) == POISON


def test_batches_without_a_row_are_committed_like_others(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    source, target = f"{topic}-in", f"{topic}-out"
    for name in (source, target):
        admin.create_topic(name, partitions=1)

    def produce(value: bytes) -> None:
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send_and_wait(source, value)

    def run() -> list[int]:
        return query(spark, bootstrap, source, target, tmp_path, "value <> 'unwanted'")

    assert run() == [], "there is nothing to read"
    produce(b"unwanted")
    assert run() == [1], "and nothing of it to write"
    produce(b"wanted")
    assert run() == [1]
    assert contents(bootstrap, target) == [(None, b"wanted", [])]
    nothing = spark.range(0).selectExpr("cast(id as string) as value")
    assert write_atomically(nothing, bootstrap, name=topic, topic=target) == 0
    assert len(contents(bootstrap, target)) == 1
