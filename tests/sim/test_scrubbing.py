"""Bits that flip in closed segments are found in the background, and the replica is replaced (ADR 20)."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.ids import TopicPartition
from strandline.broker.logs import scrubber
from strandline.sim.checks import log
from strandline.sim.search.damage import flip_some_bit, segments_of
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.storage.scrubbing import ScrubbedPart, load_state
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

SMALL = {"internal.segment.bytes": "3000", "min.insync.replicas": "2"}
OFTEN = {"strandline.log.scrub.interval.ms": "1000"}
PARTITION = TopicPartition("t", 0)


async def begin(world: World, settings: dict[str, str]) -> list[SimulatedNode]:
    nodes = world.add_cluster(settings=settings)
    await world.start_all()
    await create_topic(await world.connect_any(), "t", configs=SMALL, replication_factor=3)
    await until(lambda: log.are_in_sync(world, ["t"]))
    client = await world.connect_leader("t", 0)
    for number in range(40):
        await produce(client, "t", 0, [f"{number} ".encode() * 50])
    await until(lambda: log.are_in_sync(world, ["t"]))
    return nodes


def damage(world: World, node: SimulatedNode) -> None:
    segments = segments_of(node, [PARTITION], closed_only=True)
    assert flip_some_bit(node.disk, segments, world.generator("damage")) is not None


async def nobody_reads_it(world: World) -> None:
    nodes = await begin(world, OFTEN)
    world.chance.shuffle(nodes)
    damage(world, nodes[0])
    assert log.difference(world, ["t"]) is not None
    await until(lambda: any("a log is damaged" in line for line in nodes[0].said))
    await until(lambda: log.are_in_sync(world, ["t"]) and log.difference(world, ["t"]) is None)
    assert nodes[0].broker.node.counters.get("scrub_findings") == 1
    assert load_state(nodes[0].disk, DATA).damaged in (0, 1), "of the pass that found it, or of the next"


@seeds(3)
def test_a_bit_that_flipped_is_found_before_anybody_reads_it(seed: int) -> None:
    scenarios.run(nobody_reads_it, seed)


def test_a_scrub_that_checks_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        scrubber, "scrub_part", lambda disk, path, position, end, size: ScrubbedPart(end, None)
    )
    with pytest.raises(AssertionError, match="does not settle"):
        scenarios.run(nobody_reads_it, 0)


async def switched_off(world: World) -> None:
    nodes = await begin(world, {**OFTEN, "strandline.log.scrub.enable": "false"})
    damage(world, nodes[0])
    await asyncio.sleep(300)
    assert nodes[0].broker.node.counters.get("scrubbed_bytes") == 0
    assert log.difference(world, ["t"]) is not None


def test_scrubbing_can_be_switched_off() -> None:
    scenarios.run(switched_off, 0)


async def interrupted(world: World) -> None:
    nodes = await begin(world, {**OFTEN, "strandline.log.scrub.bytes.per.second": "1024"})
    node = nodes[0]
    await until(lambda: load_state(node.disk, DATA).segments >= 1)
    before = load_state(node.disk, DATA)
    await node.stop()
    assert before.next_partition == "t-0"
    await node.start()
    await until(lambda: load_state(node.disk, DATA).segments > before.segments)
    assert load_state(node.disk, DATA).started_ms == before.started_ms, "the same pass goes on"


def test_a_restart_goes_on_with_the_pass() -> None:
    scenarios.run(interrupted, 0)
