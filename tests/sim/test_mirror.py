"""A mirror between two simulated clusters: brokers and mirrors die, links are cut, and a judge knows both logs.

The judge's rules, once everything is well again:
1. The target has the committed records of the source, each once and in order.
2. The offset of each copy is the one that the journal translates the record's offset to.
3. That is so after the journal's beginning was deleted.
A mutant is a rule of the mirror that is switched off; the same search must find it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.consumer.batch_consumer import BatchConsumer
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import KafkaError
from strandline.client.producer.producer import Producer
from strandline.mirror.clients import FlowClients
from strandline.mirror.copying import copier as copying
from strandline.mirror.journal.follower import JournalFollower
from strandline.mirror.journal.offset_map import CopiedRange
from strandline.mirror.journal.snapshots import SnapshotReader, restore
from strandline.mirror.journal.trimmer import JournalTrimmer
from strandline.mirror.operations.control import MirrorControl
from strandline.mirror.session import EARLIEST
from strandline.sim.client_world import client_world
from strandline.sim.world import CLIENT_HOST, World
from tests.sim.mirrored_clusters import PARTITIONS, Clusters
from tests.sim.seeds import seeds

TRANSACTIONS = 40
OTHER_HOST = "host of the second mirror"
CATCH_UP_SECONDS = 300.0
MUTANT_SEEDS = 8


async def write(clusters: Clusters) -> None:
    """Transactions at the source, of which some are aborted; a source that dies meanwhile is waited for."""
    chance = clusters.world.generator("writes")
    number = 0
    for _ in range(TRANSACTIONS):
        try:
            async with clusters.client(
                Producer, clusters.east, **{"transactional.id": "writer", "max.block.ms": 60_000}
            ) as producer:
                await producer.init_transactions()
                producer.begin_transaction()
                for _ in range(chance.randrange(1, 12)):
                    number += 1
                    await producer.send("t", b"%06d" % number, partition=number % PARTITIONS)
                if chance.random() < 0.3:
                    await producer.flush()
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        except KafkaError:
            continue  # Whether it was committed the log of the source says.
        await asyncio.sleep(chance.random() * 0.5)


async def disturb(clusters: Clusters) -> None:
    """Kills the mirror, kills brokers, cuts links; everything is well again after each."""
    world, chance = clusters.world, clusters.world.generator("faults")
    for _ in range(12):
        await asyncio.sleep(chance.random() * 2)
        fault = chance.choice(["mirror", "mirror", "mirror", "other", "other", "east", "west", "west", "cut"])
        node = clusters.east if fault == "east" else clusters.west
        if fault == "mirror":
            await clusters.wait_for_transaction()
            await asyncio.sleep(chance.random() * 0.02)
            await clusters.kill_mirror()
            await asyncio.sleep(chance.random() * 2)
            clusters.start_mirror()
        elif fault == "other":
            await clusters.wait_for_transaction()
            if clusters.is_running("two"):
                await clusters.kill_mirror("two")
            else:
                clusters.start_mirror("two", OTHER_HOST)
        elif fault == "cut":
            # One way, so that requests arrive late, or their responses.
            way = [chance.choice([CLIENT_HOST, OTHER_HOST]), node.host]
            chance.shuffle(way)
            world.network.cut(*way)
            await asyncio.sleep(chance.random() * 8)
            world.network.heal()
        else:
            node.kill()
            await asyncio.sleep(chance.random() * 2)
            await node.start()


async def judge(clusters: Clusters) -> None:
    original = await clusters.read(clusters.east, "t")
    deadline = clusters.world.loop.time() + CATCH_UP_SECONDS
    while True:
        copied = await clusters.read(clusters.west, "east.t")
        has_all = all(len(copied[each]) >= len(original[each]) for each in original)
        if has_all or clusters.world.loop.time() > deadline:
            break
        await asyncio.sleep(1)
    for partition, records in original.items():
        values = [value for _, value in copied[partition]]
        assert values == [value for _, value in records], (
            "the copy is not the committed records, once and in order"
        )
    (flow,) = clusters.settings.flows
    async with MirrorControl(flow, client_world(clusters.world, "judge")) as control:
        await _wait_for_cut(control)
        journal = await control.journal()
    for partition, records in original.items():
        places = {value: offset for offset, value in copied[partition]}
        for offset, value in records:
            translated = journal.to_target(TopicPartition("t", partition), offset)
            assert translated == places[value], "a translated offset is not that of the copy"


async def _wait_for_cut(control: MirrorControl) -> None:
    """Waits until the journal's beginning is deleted, so that a reader needs a snapshot."""
    where = TopicPartition(control.journal_topic, 0)
    for _ in range(100):
        if (await control.target.list_offsets({where: EARLIEST}))[where].offset > 0:
            return
        await asyncio.sleep(1)
    raise AssertionError("the journal was not cut")


async def story(world: World) -> None:
    clusters = Clusters(world)
    await world.start_all()
    async with clusters.client(Admin, clusters.east) as admin:
        await admin.create_topic("t", partitions=PARTITIONS, replication_factor=1)
    clusters.start_mirror()
    writing = world.start_task(write(clusters))
    try:
        await disturb(clusters)
        await writing
        await judge(clusters)
    finally:
        await clusters.kill_mirrors()


@seeds(3)
def test_committed_records_are_copied_once_and_translated_exactly(seed: int) -> None:
    with World(seed) as world:
        world.run(story(world))


# Mutants


async def offsets_after_the_transaction(self: Any, offsets: Any) -> None:
    """Rule 1 of `copier` switched off: the offsets are committed by themselves, before their records."""
    by_target = {
        self._partitions[source].target: OffsetAndMetadata(position.offset)
        for source, position in offsets.items()
    }
    if by_target:
        await self._member._consumer.commit(by_target)


def no_rewind(self: Any) -> None:
    """Rule 3 switched off: batches of a transaction that failed are not read again."""


def reader_of_everything(self: Any) -> BatchConsumer:
    """Returns a consumer of the source with read_uncommitted."""
    settings = {
        "bootstrap.servers": self._flow.source.settings["bootstrap.servers"],
        "auto.offset.reset": "none",
    }
    return BatchConsumer({**settings, "isolation.level": "read_uncommitted"}, world=self._world)


def ranges_without_gaps(sources: Any, targets: Any) -> list[CopiedRange]:
    """Returns the ranges of the offset map, which takes a whole batch for one range, and its end for the next: gaps are
    not in it."""
    sources, targets = list(sources), list(targets)
    length = sources[-1][0] + sources[-1][1] - sources[0][0]
    return [CopiedRange(sources[0][0], targets[0][0] + 1, length)]


async def cut_without_a_snapshot(self: Any) -> None:
    """Rule 3 of `journal.snapshots` switched off: entries are deleted that no snapshot covers."""
    await self._target.delete_records({self._where: self._follower.position})


def without_what_came_meanwhile(self: Any, covers: int, parts: Any) -> None:
    """Rule 1 of `journal.snapshots` switched off: entries between the offset and the snapshot are not applied."""
    restore(self.state, parts)
    self.state.is_whole = True
    self.covered = covers


def first_part_alone(self: Any, value: bytes) -> Any:
    """Rule 2 of `journal.snapshots` switched off: a snapshot counts as soon as a part of it is read."""
    document = json.loads(value)
    return document["covers"], [document]


MUTANTS: list[tuple[type[Any] | Any, str, Callable[..., Any]]] = [
    (copying.Copier, "_send_offsets", offsets_after_the_transaction),
    (copying.Copier, "_rewind", no_rewind),
    (FlowClients, "reader", reader_of_everything),
    (copying, "ranges_of", ranges_without_gaps),
    (JournalTrimmer, "trim", cut_without_a_snapshot),
    (JournalFollower, "_go_on_from", without_what_came_meanwhile),
    (SnapshotReader, "add", first_part_alone),
]


@pytest.mark.parametrize(("where", "name", "mutant"), MUTANTS, ids=[name for _, name, _ in MUTANTS])
def test_each_rule_is_needed(where: Any, name: str, mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, mutant)
    for seed in range(MUTANT_SEEDS):
        try:
            with World(seed) as world:
                world.run(story(world))
        except AssertionError:
            return
    pytest.fail(f"{MUTANT_SEEDS} seeds did not find that {name} was switched off")
