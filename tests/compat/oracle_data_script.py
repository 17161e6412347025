"""Requests that write and read records, for `test_oracle_answers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline.wire.api import k00_produce as produce
from strandline.wire.api import k01_fetch as fetch
from strandline.wire.api import k02_list_offsets as list_offsets
from strandline.wire.api import k23_offset_for_leader_epoch as offset_for_leader_epoch
from strandline.wire.record_batch import Record, build_batch
from strandline.wire.schema import Request
from tests.compat.oracle_steps import T0, Run, Step, each_version, topic_id

TOPIC = 2
BROKER = 4
# How many records are in the first partition of the main topic after `produce_steps`.
WRITTEN = 23


def batch(
    *values: bytes, timestamp: int = T0, producer: tuple[int, int, int] = (-1, -1, -1), attributes: int = 0
) -> bytes:
    records = [Record(n, timestamp + n, b"k%d" % n, value, ((b"h", b"1"),)) for n, value in enumerate(values)]
    producer_id, epoch, sequence = producer
    return build_batch(
        records, attributes=attributes, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


def producing(
    records: bytes, topic: str = "main", partition: int = 0, acks: int = -1
) -> Callable[[Run], Request]:
    def build(run: Run) -> Request:
        return produce.ProduceRequest(
            acks=acks,
            timeout_ms=5000,
            topic_data=(
                produce.TopicProduceData(
                    name=topic,
                    topic_id=topic_id(run, topic),
                    partition_data=(produce.PartitionProduceData(index=partition, records=records),),
                ),
            ),
        )

    return build


def produce_steps() -> Iterator[Step]:
    yield from each_version(produce.ProduceRequest, "Produce", producing(batch(b"one", b"two")))
    good = batch(b"good")
    torn = bytearray(good)
    torn[-1] ^= 1
    old = bytearray(good)
    old[16] = 1
    wrong_count = bytearray(good)
    wrong_count[57:61] = (5).to_bytes(4, "big")
    cases = {
        "wrong CRC": producing(bytes(torn)),
        "magic 1": producing(bytes(old)),
        "count that does not fit": producing(_sealed(bytes(wrong_count))),
        "no batch": producing(b""),
        "two batches": producing(good + good),
        "too large": producing(batch(b"x" * 3000)),
        "unknown topic": producing(good, topic="no-such-topic"),
        "unknown partition": producing(good, partition=77),
        "acks 2": producing(good, acks=2),
        "control batch": producing(batch(b"c", attributes=0x20)),
        "transactional without a producer": producing(batch(b"t", attributes=0x10)),
        "unknown codec": producing(batch(b"u", attributes=0)[:21] + b"\x00\x07" + batch(b"u")[23:]),
        "timestamp of the far future": producing(batch(b"f", timestamp=T0 * 3)),
        "log append time": producing(batch(b"s"), topic="stamped"),
    }
    for name, build in cases.items():
        for version in (9, 12):
            if version == 12 and name not in ("unknown topic", "wrong CRC", "two batches"):
                continue
            yield Step(f"Produce v{version}: {name}", version, build)
    yield Step("Produce v13: unknown topic id", 13, producing(good, topic="no-such-topic"))
    zstd = build_batch([Record(0, T0, b"k", b"zstd")], attributes=4)
    yield Step("Produce v6: zstd", 6, producing(zstd))
    yield Step("Produce v7: zstd", 7, producing(zstd))
    for producer in (
        (4000, 0, 0),
        (4000, 0, 1),
        (4000, 0, 1),
        (4000, 0, 5),
        (4000, 1, 3),
        (4000, 1, 0),
        (4000, 0, 2),
        (4001, 0, 9),
    ):
        name = f"Produce as producer {producer[0]} epoch {producer[1]} sequence {producer[2]}"
        yield Step(name, 9, producing(batch(b"i", producer=producer), partition=1))


def _sealed(data: bytes) -> bytes:
    """With the CRC that its contents have now."""
    from crc32c import crc32c

    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def fetching(
    offset: int,
    *,
    topic: str = "main",
    partition: int = 0,
    isolation: int = 0,
    epoch: int = -1,
    last_epoch: int = -1,
    session: tuple[int, int] = (0, -1),
    max_bytes: int = 1 << 20,
) -> Callable[[Run], Request]:
    def build(run: Run) -> Request:
        return fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=session[0],
            session_epoch=session[1],
            topics=(
                fetch.FetchTopic(
                    topic=topic,
                    topic_id=topic_id(run, topic),
                    partitions=(
                        fetch.FetchPartition(
                            partition=partition,
                            current_leader_epoch=epoch,
                            fetch_offset=offset,
                            last_fetched_epoch=last_epoch,
                            partition_max_bytes=max_bytes,
                        ),
                    ),
                ),
            ),
        )

    return build


def fetch_steps() -> Iterator[Step]:
    for version in range(4, 19):
        yield Step(f"Fetch v{version}", version, fetching(0))
    cases = {
        "from the middle of a batch": fetching(3),
        "at the end": fetching(WRITTEN),
        "beyond the end": fetching(1000),
        "below zero": fetching(-5),
        "read committed": fetching(0, isolation=1),
        "read committed at the end": fetching(WRITTEN, isolation=1),
        "one byte": fetching(0, max_bytes=1),
        "no bytes": fetching(0, max_bytes=0),
        "unknown topic": fetching(0, topic="no-such-topic"),
        "unknown partition": fetching(0, partition=9),
        "right leader epoch": fetching(0, epoch=0),
        "leader epoch of the future": fetching(0, epoch=7),
        "unknown session": fetching(0, session=(12345, 3)),
    }
    for name, build in cases.items():
        for version in (11, 12, 17):
            yield Step(f"Fetch v{version}: {name}", version, build)
    for version in (12, 17):
        yield Step(f"Fetch v{version}: last fetched epoch", version, fetching(2, last_epoch=0))


def offset_steps() -> Iterator[Step]:
    def listing(
        timestamp: int, topic: str = "main", partition: int = 0, isolation: int = 0, epoch: int = -1
    ) -> Callable[[Run], Request]:
        return lambda run: list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=(
                list_offsets.ListOffsetsTopic(
                    name=topic,
                    partitions=(
                        list_offsets.ListOffsetsPartition(
                            partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch
                        ),
                    ),
                ),
            ),
        )

    for version in range(1, 12):
        for name, timestamp in (("latest", -1), ("earliest", -2), ("by time", T0 + 1), ("after all", T0 * 2)):
            yield Step(f"ListOffsets v{version}: {name}", version, listing(timestamp))
    for version in (7, 9, 11):
        for meaning in (-3, -4, -5, -6):
            yield Step(f"ListOffsets v{version}: {meaning}", version, listing(meaning))
    yield Step("ListOffsets: unknown topic", 9, listing(-1, topic="no-such-topic"))
    yield Step("ListOffsets: unknown partition", 9, listing(-1, partition=9))
    yield Step("ListOffsets: epoch of the future", 9, listing(-1, epoch=5))
    for version in range(2, 5):
        for epoch in (0, 3, -1):
            request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                replica_id=-1,
                topics=(
                    offset_for_leader_epoch.OffsetForLeaderTopic(
                        topic="main",
                        partitions=(
                            offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=epoch),
                            offset_for_leader_epoch.OffsetForLeaderPartition(partition=9, leader_epoch=epoch),
                        ),
                    ),
                ),
            )
            yield Step(
                f"OffsetForLeaderEpoch v{version}: {epoch}", version, lambda run, request=request: request
            )  # type: ignore[misc]
