"""Judges a partition: what readers are given, and what is in its files, against what producers were told."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode, error_name
from strandline.ports.disk import Disk
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import SentBatch
from strandline.storage import names
from strandline.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.wire.record_batch import Record, checksum, headers_in, records_in

EARLIEST: Final = -2
LATEST: Final = -1
_BY_NAME: Final = 12  # the last Fetch version that names topics
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class ReadPartition(NamedTuple):
    """The contents of a partition as a reader from its beginning gets them."""

    start_offset: int
    end_offset: int
    records: list[Record]
    epochs: list[tuple[int, int]]  # leader epoch and the first offset that has it


async def fetch_one(
    client: WireClient,
    topic: str,
    partition: int,
    offset: int,
    *,
    max_wait_ms: int = 0,
    size_max: int = 1 << 20,
) -> PartitionData:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size_max)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=size_max,
        topics=(FetchTopic(topic=topic, partitions=(asked,)),),
    )
    response = await client.request(request, FetchResponse, version=_BY_NAME)
    return response.responses[0].partitions[0]


async def list_offset(client: WireClient, topic: str, partition: int, timestamp: int) -> int:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))
    response = await client.request(request, ListOffsetsResponse)
    listed = response.topics[0].partitions[0]
    assert listed.error_code == ErrorCode.NONE, error_name(listed.error_code)
    return listed.offset


async def read_partition(client: WireClient, topic: str, partition: int) -> ReadPartition:
    """Reads a partition from the log start to the high watermark; checks that every batch is whole and its CRC is
    right."""
    start = offset = await list_offset(client, topic, partition, EARLIEST)
    records: list[Record] = []
    epochs: list[tuple[int, int]] = []
    while True:
        data = await fetch_one(client, topic, partition, offset)
        assert data.error_code == ErrorCode.NONE, f"at offset {offset}: {error_name(data.error_code)}"
        content = memoryview(data.records or b"")
        if not content:
            assert offset == data.high_watermark, f"nothing to read at {offset} below {data.high_watermark}"
            return ReadPartition(start, offset, records, epochs)
        for position, header in headers_in(content):
            batch = content[position : position + header.size]
            assert checksum(batch) == header.crc, f"a wrong CRC at offset {header.base_offset}"
            if not epochs or epochs[-1][0] != header.leader_epoch:
                epochs.append((header.leader_epoch, header.base_offset))
            records += [record for record in records_in(batch) if record.offset >= offset]
            offset = header.next_offset


def check_history(read: ReadPartition, histories: Iterable[Iterable[SentBatch]]) -> None:
    """Checks that no acknowledged record is missing or elsewhere, that none is there twice, and that each was sent by
    somebody."""
    check_offsets(read)
    place: dict[bytes, int] = {}
    for record in read.records:
        assert record.value is not None
        assert record.value not in place, (
            f"{_short(record.value)} is at {place[record.value]} and at {record.offset}"
        )
        place[record.value] = record.offset
    for history in histories:
        last = -1
        for batch in history:
            found = [place.pop(value, None) for value in batch.values]
            if batch.is_acknowledged:
                assert None not in found, f"{_short(batch.values[0])} was acknowledged and is missing"
            if found[0] is None:
                assert not any(found), f"a part of {_short(batch.values[0])} is there"
                continue
            assert found == list(range(found[0], found[0] + len(found))), (
                f"{_short(batch.values[0])}: {found}"
            )
            if batch.base_offset >= 0:
                assert found[0] == batch.base_offset, (
                    f"{_short(batch.values[0])} was acknowledged at {batch.base_offset} and is at {found[0]}"
                )
            assert found[0] > last, f"{_short(batch.values[0])} is at {found[0]}, after its successor"
            last = found[0]
    assert not place, f"nobody sent {_short(next(iter(place)))}"


def check_offsets(read: ReadPartition) -> None:
    offsets = [record.offset for record in read.records]
    assert offsets == list(range(read.start_offset, read.end_offset)), "offsets have no gap and no repetition"
    epochs = [epoch for epoch, _ in read.epochs]
    assert epochs == sorted(set(epochs)), f"leader epochs go back: {read.epochs}"


def _short(value: bytes) -> str:
    return repr(value[:40].rstrip(b"."))


# Files


def check_files(disk: Disk, directory: str) -> None:
    """Checks a partition's files after a clean shutdown: whole batches, offsets without gaps, indexes that are
    right."""
    present = disk.names(directory)
    bases = sorted(
        base
        for name in present
        if name.endswith(names.LOG) and (base := names.base_offset_of(name)) is not None
    )
    assert bases, f"{directory} has no segment"
    expected = bases[0]
    for base in bases:
        assert base == expected, f"{directory}: a segment begins at {base}, and {expected} is due"
        expected = _check_segment(disk, directory, base)


def _check_segment(disk: Disk, directory: str, base: int) -> int:
    """Checks one segment; returns the offset after its last record."""
    stem = f"{directory}/{names.segment_file(base, '')}"
    log = memoryview(disk.read(stem + names.LOG))
    last_offsets: dict[int, int] = {}  # by position
    end = 0
    following = base
    for position, header in headers_in(log):
        assert checksum(log[position : position + header.size]) == header.crc, f"{stem}: CRC at {position}"
        assert header.base_offset == following, f"{stem}: {header.base_offset} where {following} is due"
        last_offsets[position] = header.last_offset
        following = header.next_offset
        end = position + header.size
    assert end == len(log), f"{stem}: {len(log) - end} bytes after the last batch"
    entries = list(_OFFSET_ENTRY.iter_unpack(disk.read(stem + names.OFFSET_INDEX)))
    assert entries == sorted(set(entries)), f"{stem}: an offset index out of order"
    for relative, position in entries:
        assert last_offsets.get(position) == base + relative, f"{stem}: index entry {relative, position}"
    times = list(_TIME_ENTRY.iter_unpack(disk.read(stem + names.TIME_INDEX)))
    assert times == sorted(set(times)), f"{stem}: a time index out of order"
    relatives = [relative for _, relative in times]
    assert relatives == sorted(set(relatives)), f"{stem}: a time index out of order"
    assert not relatives or base + relatives[-1] < following
    return following
