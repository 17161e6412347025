"""A damaged log is cut at the first batch that is wrong: the batches before it stay, it and those after it go."""

from __future__ import annotations

import pytest

from strandline.sim.checks.partition import check_files, read_partition
from strandline.sim.search.damage import LEADER_EPOCH, flip_bit
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import DATA, World
from strandline.wire.record_batch import HEADER_BYTES, headers_in
from tests.sim.seeds import seeds


@seeds(20)
def test_after_a_crash_the_log_is_cut_at_the_first_bad_batch(seed: int) -> None:
    async def scenario(world: World) -> None:
        chance = world.chance
        node = world.add_node()
        await node.start()
        client = await world.connect(node)
        configs = {"internal.segment.bytes": "20000", "index.interval.bytes": "500"}
        await create_topic(client, "t", configs=configs)
        for number in range(60):
            await produce(client, "t", 0, [b"%d " % number + b"x" * chance.randrange(1000)])
        before = await read_partition(client, "t", 0)
        directory = f"{DATA}/t-0"
        segment = chance.choice([name for name in node.disk.names(directory) if name.endswith(".log")])
        path = f"{directory}/{segment}"
        position, header = chance.choice(list(headers_in(node.disk.read(path))))
        inside = chance.choice([at for at in range(header.size) if at not in LEADER_EPOCH])
        disk = node.disk
        flip_bit(disk, path, position + inside, chance.randrange(8))
        node.kill()
        await node.start()
        client = await world.connect(node)
        after = await read_partition(client, "t", 0)
        assert after.end_offset == header.base_offset
        assert after.records == before.records[: header.base_offset]
        assert any("repaired" in line and segment in line for line in node.said)
        assert await produce(client, "t", 0, [b"goes on"]) == header.base_offset
        await node.stop()
        await node.start()
        check_files(node.disk, directory)

    with World(seed) as world:
        world.run(scenario(world))


@seeds(5)
def test_a_segment_that_lost_its_tail_at_the_end_of_a_batch_is_the_last_one(seed: int) -> None:
    async def scenario(world: World) -> None:
        node = world.add_node()
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs={"internal.segment.bytes": "3000"})
        for number in range(30):
            await produce(client, "t", 0, [b"%d" % number + b"x" * 400])
        before = await read_partition(client, "t", 0)
        segments = [name for name in node.disk.names(f"{DATA}/t-0") if name.endswith(".log")]
        path = f"{DATA}/t-0/{world.chance.choice(segments)}"
        position, header = world.chance.choice(list(headers_in(node.disk.read(path))))
        node.disk.open(path).truncate(position)
        node.kill()
        await node.start()
        after = await read_partition(await world.connect(node), "t", 0)
        assert after.records == before.records[: header.base_offset]
        await node.stop()
        await node.start()
        check_files(node.disk, f"{DATA}/t-0")

    with World(seed) as world:
        world.run(scenario(world))


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
def test_damage_beside_the_records_costs_no_record(suffix: str) -> None:
    async def scenario(world: World) -> None:
        node = world.add_node()
        await node.start()
        client = await world.connect(node)
        configs = {"internal.segment.bytes": "5000", "index.interval.bytes": "100"}
        await create_topic(client, "t", configs=configs)
        for number in range(40):
            await produce(client, "t", 0, [b"%d" % number + b"x" * 300])
        before = await read_partition(client, "t", 0)
        for name in node.disk.names(f"{DATA}/t-0"):
            if name.endswith(suffix):
                file = node.disk.open(f"{DATA}/t-0/{name}")
                file.truncate(max(0, file.size() - 5))
                file.close()
        node.kill()
        await node.start()
        client = await world.connect(node)
        assert (await read_partition(client, "t", 0)).records == before.records
        await node.stop()
        await node.start()
        check_files(node.disk, f"{DATA}/t-0")

    with World(1) as world:
        world.run(scenario(world))


def test_a_bit_that_flips_while_a_log_is_read_for_repair_cuts_it_there() -> None:
    async def scenario(world: World) -> None:
        node = world.add_node()
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        for number in range(5):
            await produce(client, "t", 0, [b"%d" % number])
        size = node.disk.size(f"{DATA}/t-0/{0:020}.log") // 5
        node.kill()
        node.faults.flip_bit_on_read(f"{DATA}/t-0/*.log", 2 * size + HEADER_BYTES)
        await node.start()
        assert (await read_partition(await world.connect(node), "t", 0)).end_offset == 2

    with World(1) as world:
        world.run(scenario(world))
