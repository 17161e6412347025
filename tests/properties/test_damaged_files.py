"""One damaged file in a data directory, and a start: everything before the damage is there, and nothing torn is served.

Two things no start can see, because Kafka's format does not guard them: a changed base offset or leader epoch in a
batch's header, which its CRC does not cover, and another number in a checkpoint, which is plain text. The first is
left out here; of the second only the log starts matter, since what they say is deleted is deleted.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import ErrorCode
from strandline.storage.directory import UnusableDirectory
from strandline.wire.record_batch import CorruptBatch, checksum, headers_in, records_in
from tests.batches import NOW_MS, batch
from tests.properties.damage import UNCHECKED
from tests.unit.broker.requests import append, create, delete_records, fetch, fetched, list_offset
from tests.unit.broker.world import Client, World

from .effort import effort

SETTINGS = {"log.index.interval.bytes": "200"}
PARTITIONS = (("a", 0), ("a", 1), ("b", 0))
Records = dict[int, bytes]  # offset to value
METADATA = "__cluster_metadata-0"


class Home(NamedTuple):
    path: Path
    stored: dict[tuple[str, int], Records]
    files: list[str]


async def fill(world: World) -> None:
    client = world.connect()
    await create(client, "a", partitions=2, internal_segment_bytes="1200")
    await create(client, "b")
    for topic, index in PARTITIONS:
        sequence = 0
        for number in range(12):
            count = 1 + number % 3
            data = batch(
                count,
                size=40,
                first=100 * number,
                timestamp=NOW_MS + number,
                codec=(0, 1, 4)[number % 3],
                producer_id=9,
                epoch=0,
                sequence=sequence,
            )
            await append(client, data, topic=topic, partition=index)
            sequence += count
    await delete_records(client, 2, topic="b")


@pytest.fixture(scope="module", params=["clean", "crashed"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    path = tmp_path_factory.mktemp(request.param)
    stored: dict[tuple[str, int], Records] = {}

    async def begin() -> None:
        world = World(path, SETTINGS)
        await world.__aenter__()
        await fill(world)
        for topic, index in PARTITIONS:
            stored[topic, index] = await everything(world.connect(), topic, index)
        if request.param == "clean":
            await world.stop()
        else:
            await world.broker.maintenance.checkpoint_high_watermarks()
            world.crash()
        world.check()

    asyncio.run(begin())
    assert [len(records) for records in stored.values()] == [24, 24, 22]
    files = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    assert sum(name.endswith(".log") for name in files) > 5, "several segments"
    return Home(
        path, stored, [name for name in files if not name.endswith((".lock", "log-start-offset-checkpoint"))]
    )


async def everything(client: Client, topic: str, index: int) -> Records:
    """Returns all that a careful client can read: it checks every CRC and stops at what does not fit."""
    found: Records = {}
    part = fetched(await client.call(fetch((index, 0), topic=topic), 12))[index]
    if part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return found
    offset = int((await list_offset(client, -2, topic=topic, partition=index)).offset)
    while True:
        part = fetched(await client.call(fetch((index, offset), topic=topic, partition_bytes=300), 12))[index]
        if part.error_code != ErrorCode.NONE:
            assert part.error_code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE), part
            return found
        data = bytes(part.records or b"")
        if not data:
            return found
        read, is_damaged = whole_batches(data)
        found |= {at: value for at, value in read.items() if at >= offset}
        if is_damaged:
            return found
        assert max(read) >= offset, "a response with records has one whole batch"
        offset = max(read) + 1


def whole_batches(data: bytes) -> tuple[Records, bool]:
    """Records of the batches whose CRC fits, up to the first that does not; whether there was such a one."""
    found: Records = {}
    try:
        for position, header in headers_in(data):
            one = memoryview(data)[position : position + header.size]
            if checksum(one) != header.crc:
                return found, True
            found |= {record.offset: record.value or b"" for record in records_in(one)}
    except CorruptBatch:
        return found, True
    return found, False


class Damage(NamedTuple):
    """Where the file's contents are no longer what they were, and what they are."""

    position: int
    contents: bytes | None


@st.composite
def damages(draw: st.DrawFn, data: bytes, *, is_log: bool) -> Damage:
    position = draw(st.integers(0, max(len(data) - 1, 0)))
    match draw(st.sampled_from(("flip", "cut", "zeros", "more", "gone"))):
        case "flip" if data and not (is_log and _place_in_batch(data, position) in UNCHECKED):
            flipped = bytes((data[position] ^ draw(st.integers(1, 255)),))
            return Damage(position, data[:position] + flipped + data[position + 1 :])
        case "cut":
            return Damage(position, data[:position])
        case "zeros":
            return Damage(position, data[:position] + bytes(len(data) - position))
        case "gone" if not is_log:
            return Damage(0, None)
        case _:
            return Damage(len(data), data + draw(st.binary(min_size=1, max_size=80)))


def _place_in_batch(data: bytes, position: int) -> int:
    for begin, header in headers_in(data):
        if begin <= position < begin + header.size:
            return position - begin
    return 0


@pytest.mark.parametrize(
    "kind",
    [".log", "index", ".snapshot", "checkpoint", "metadata", "quorum-state", "cleanshutdown", METADATA],
)
def test_a_start_survives_a_damaged_file_and_keeps_what_lies_before_the_damage(
    kind: str, home: Home, tmp_path: Path
) -> None:
    names = [name for name in home.files if kind in name and (kind == METADATA or METADATA not in name)]
    if kind == "metadata":
        names = [name for name in home.files if name.endswith("partition.metadata")]
    if kind == "quorum-state":
        names = [name for name in home.files if name.endswith("quorum-state")]
    if not names:
        return  # a crash leaves no such file
    numbers = iter(range(10**9))

    @effort(10, soak=250)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(names))
        content = (home.path / name).read_bytes()
        damage = data.draw(damages(content, is_log=name.endswith(".log")))
        copy = tmp_path / str(next(numbers))
        shutil.copytree(home.path, copy)
        if damage.contents is None:
            (copy / name).unlink()
        else:
            (copy / name).write_bytes(damage.contents)
        asyncio.run(survives(copy, home, name, damage.position))
        shutil.rmtree(copy)

    check()


async def survives(copy: Path, home: Home, name: str, position: int) -> None:
    try:
        world = World(copy, SETTINGS)
        await world.__aenter__()
    except UnusableDirectory:
        assert name.endswith("meta.properties")
        return
    client = world.connect()
    for (topic, index), stored in home.stored.items():
        found = await everything(client, topic, index)
        assert {offset: stored.get(offset) for offset in found} == found, "nothing else is served"
        directory = f"{topic}-{index}/"
        if found != stored and (METADATA in name or name.endswith(f"{directory}partition.metadata")):
            assert found == {}
            check_set_aside(copy, home, topic, index)
        elif directory in name and name.endswith(".log"):
            assert before_damage(home, name, position, stored) <= set(found)
        else:
            assert found == stored
    await world.stop()
    world.check()


def before_damage(home: Home, name: str, position: int, stored: Records) -> set[int]:
    """Offsets of the batches that lie before the damage, in its own file and in those of earlier segments."""
    data = (home.path / name).read_bytes()
    whole = [header.next_offset for begin, header in headers_in(data) if begin + header.size <= position]
    end = max(whole, default=int(Path(name).stem))
    return {offset for offset in stored if offset < end}


def check_set_aside(copy: Path, home: Home, topic: str, index: int) -> None:
    """Nobody knows the topic, or the directory says that it is another's: its records are still on the disk."""
    (stray,) = [path for path in (copy / "data").iterdir() if path.name.startswith(f"{topic}-{index}.")]
    assert stray.name.endswith("-stray")
    for file in (home.path / "data" / f"{topic}-{index}").glob("*.log"):
        assert (stray / file.name).read_bytes() == file.read_bytes()
