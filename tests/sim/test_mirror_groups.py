"""Groups at the target, failover, and topics that are deleted or grown, on two simulated clusters; each rule has a
mutant, with which its case must fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.groups import CommittedOffset
from strandline.client.consumer.consumer import Consumer
from strandline.client.producer.producer import Producer
from strandline.mirror.checkpoints.group_offsets import MirroredGroups
from strandline.mirror.config.settings import MirrorConfigError
from strandline.mirror.operations import failover
from strandline.mirror.operations.control import MirrorControl
from strandline.mirror.operations.failback import plan_failback
from strandline.mirror.operations.verify import verify
from strandline.mirror.reports import Reports
from strandline.sim.client_world import client_world
from strandline.sim.world import World
from tests.sim.mirror_cases import SECONDS_MAX, Story, copied, create_topic, find_mutant, journal_of, write
from tests.sim.mirrored_clusters import PARTITIONS, Clusters
from tests.sim.seeds import seeds

SYNCED = {
    "sync_group_offsets_enabled": "true",
    "sync_group_offsets_interval_seconds": "1",
    "emit_checkpoints_interval_seconds": "1",
    "refresh_groups_interval_seconds": "1",
    "refresh_topics_interval_seconds": "1",
}
GROUP = "billing"
HERE, COPY = TopicPartition("t", 0), TopicPartition("east.t", 0)
VALUES = [b"%03d" % number for number in range(60)]


async def begin(world: World) -> Clusters:
    clusters = Clusters(world, **SYNCED)
    await world.start_all()
    await create_topic(clusters, clusters.east)
    clusters.start_mirror()
    return clusters


async def commit(clusters: Clusters, node: Any, where: TopicPartition, offset: int) -> None:
    async with clusters.client(Admin, node) as admin:
        await admin.alter_group_offsets(GROUP, {where: CommittedOffset(offset=offset)})


async def committed(clusters: Clusters) -> int:
    """The group's offset at the target; -1 if it has none."""
    async with clusters.client(Admin, clusters.west) as admin:
        offsets = await admin.list_group_offsets(GROUP)
    return offsets[COPY].offset if COPY in offsets else -1


async def until_committed(clusters: Clusters, offset: int) -> None:
    for _ in range(SECONDS_MAX):
        found = await committed(clusters)
        if found == offset:
            return
        await asyncio.sleep(1)
    raise AssertionError(f"the group is at {found} at the target, not at {offset}")


# Groups go only forward at the target


async def group_goes_only_forward(world: World) -> None:
    clusters = await begin(world)
    try:
        await write(clusters, clusters.east, VALUES)
        places = [offset for offset, _ in await copied(clusters, "east.t", len(VALUES))]
        await commit(clusters, clusters.east, HERE, 20)
        await until_committed(clusters, places[20])
        await commit(clusters, clusters.west, COPY, places[50])  # it has read at the target
        await commit(clusters, clusters.east, HERE, 30)
        await asyncio.sleep(15)
        assert await committed(clusters) == places[50], "a group that was ahead was moved back"
        await commit(clusters, clusters.east, HERE, 55)
        await until_committed(clusters, places[55])
    finally:
        await clusters.kill_mirrors()


def groups_go_back(original: Any) -> Any:
    """Rule 3 of `group_offsets` switched off: the group is set to its checkpoint whatever it has."""

    async def sync(self: Any, group: str, checkpoints: Any) -> None:
        offsets = {where: CommittedOffset(offset=each.target_offset) for where, each in checkpoints.items()}
        await self._target.alter_group_offsets(group, offsets)

    return sync


# A group that has members at both ends


async def group_is_active_at_the_target(world: World) -> None:
    clusters = await begin(world)
    member = clusters.client(
        Consumer,
        clusters.west,
        **{"group.id": GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"},
    )
    try:
        await write(clusters, clusters.east, VALUES)
        await copied(clusters, "east.t", len(VALUES))
        async with member:
            member.subscribe(["east.t"])
            while not member.assignment():
                await member.poll(1.0)
            await commit(clusters, clusters.east, HERE, 20)
            for _ in range(15):
                await member.poll(1.0)
            assert await committed(clusters) == -1, "offsets of an active group were changed"
            await write(clusters, clusters.east, [b"more"])  # the event travels with it
            await copied(clusters, "east.t", len(VALUES) + 1)
            journal = await journal_of(clusters, "east->west")
            events = [each.where for each in journal.events if each.kind == "group-active-at-target"]
            assert events == [GROUP], "an active group is not told"
    finally:
        await clusters.kill_mirrors()


def active_groups_are_passed_over(original: Any) -> Any:
    """They are left alone, but nobody hears of it."""
    return lambda self, kind, where, text: None


# After a failover nothing arrives


async def failover_is_final(world: World) -> None:
    clusters = Clusters(world, **SYNCED)
    await world.start_all()
    await create_topic(clusters, clusters.east)
    clusters.start_mirror("one", "host of the mirror")
    writing = world.start_task(
        write(clusters, clusters.east, [b"%04d" % number for number in range(600)], 0.01)
    )
    try:
        await copied(clusters, "east.t", 20)
        await clusters.wait_for_transaction()
        # The requests that the process sends from now on arrive after the failover.
        world.network.cut("host of the mirror", clusters.west.host)
        operator = client_world(world, "operator")
        async with MirrorControl(clusters.settings.flow("east->west"), operator) as control:
            proof = await failover.fail_over(control, dry_run=False)
        world.network.heal()
        await writing
        await asyncio.sleep(20)
        found = (await clusters.read(clusters.west, "east.t"))[0]
        original = (await clusters.read(clusters.east, "t"))[0]
    finally:
        await clusters.kill_mirrors()
    (arrived,) = [each for each in proof.partitions if each.partition == 0]
    expected = [value for offset, value in original if offset < arrived.copied_to]
    assert [value for _, value in found] == expected, "the proof does not say what had arrived"


def nothing_is_fenced(original: Any) -> Any:
    """Step 1 of `failover` without its second half: processes end what they have under way."""

    async def fence(control: Any) -> None:
        await asyncio.sleep(0)

    return fence


def nothing_is_paused(original: Any) -> Any:
    """Step 1 of `failover` without its first half: fenced processes begin again."""

    async def set_paused(self: Any, paused: bool, reason: str) -> None:
        await asyncio.sleep(0)

    return set_paused


async def failover_without_checkpoints(world: World) -> None:
    clusters = Clusters(world, emit_checkpoints_enabled="false")
    await world.start_all()
    await create_topic(clusters, clusters.east)
    clusters.start_mirror()
    try:
        await write(clusters, clusters.east, VALUES)
        found = await copied(clusters, "east.t", len(VALUES))
        clusters.east.kill()
        operator = client_world(world, "operator")
        async with MirrorControl(clusters.settings.flow("east->west"), operator) as control:
            proof = await failover.fail_over(control, dry_run=False)
            assert (await control.journal()).failover is not None, "the proof is not written"
    finally:
        await clusters.kill_mirrors()
    assert (proof.offsets_are_from, proof.groups) == ("checkpoints", ())
    assert [each.copied_to for each in proof.partitions if each.partition == 0] == [len(found)]


async def failover_is_called_twice(world: World) -> None:
    clusters = await begin(world)
    try:
        await write(clusters, clusters.east, VALUES)
        await copied(clusters, "east.t", len(VALUES))
        operator = client_world(world, "operator")
        async with MirrorControl(clusters.settings.flow("east->west"), operator) as control:
            first = await failover.fail_over(control, dry_run=False)
            async with clusters.client(Producer, clusters.west) as producer:
                await producer.send_and_wait("east.t", b"taken by the target", partition=0)
            second = await failover.fail_over(control, dry_run=False)
            plan = await plan_failback(control)
    finally:
        await clusters.kill_mirrors()
    assert second.partitions == first.partitions
    taken = [record.value for each in plan for record in each.target_own]
    assert taken == [b"taken by the target"], "a failback would leave out records that the target took"


def later_state_counts(original: Any) -> Any:
    return lambda partitions, journal: partitions


# Topics that are deleted, and copies with more partitions


async def topic_is_deleted(world: World) -> None:
    clusters = await begin(world)
    try:
        await write(clusters, clusters.east, VALUES)
        await copied(clusters, "east.t", len(VALUES))
        async with clusters.client(Admin, clusters.east) as admin:
            await admin.delete_topics(["t"])
        await asyncio.sleep(20)
        assert len(await copied(clusters, "east.t", len(VALUES))) == len(VALUES)
        operator = client_world(world, "operator")
        async with MirrorControl(clusters.settings.flow("east->west"), operator) as control:
            status = await control.status()
            assert status.source_error is None, "the source can be reached"
            assert [each.source_end for each in status.partitions] == [None] * PARTITIONS
            assert [each.is_gone for each in await verify(control, with_contents=True)] == [True] * PARTITIONS
            await failover.fail_over(control, dry_run=False)
            with pytest.raises(MirrorConfigError, match="east has no topic t: failback completes"):
                await plan_failback(control)
            journal = await control.journal()
        assert "topic-deleted" in {each.kind for each in journal.events}, "a deleted topic is not told"
    finally:
        await clusters.kill_mirrors()


async def copy_has_more_partitions(world: World) -> None:
    clusters = await begin(world)
    try:
        await write(clusters, clusters.east, VALUES[:30])
        await copied(clusters, "east.t", 30)
        async with clusters.client(Admin, clusters.west) as admin:
            await admin.create_partitions({"east.t": 5})
        await asyncio.sleep(5)
        await write(clusters, clusters.east, VALUES[30:])
        found = await copied(clusters, "east.t", len(VALUES))
        await asyncio.sleep(10)
        journal = await journal_of(clusters, "east->west")
    finally:
        await clusters.kill_mirrors()
    assert [value for _, value in found] == VALUES, "records are in other partitions than at the source"
    assert "target-has-more-partitions" in {each.kind for each in journal.events}, (
        "other partitions are not told"
    )


def is_not_told(original: Any) -> Any:
    return lambda self, kind, where, text, **more: None


STORIES: tuple[Story, ...] = (
    group_goes_only_forward,
    group_is_active_at_the_target,
    failover_is_final,
    failover_without_checkpoints,
    failover_is_called_twice,
    topic_is_deleted,
    copy_has_more_partitions,
)
MUTANTS: list[tuple[Story, Any, str, Callable[[Any], Any]]] = [
    (group_goes_only_forward, MirroredGroups, "_sync_group", groups_go_back),
    (group_is_active_at_the_target, Reports, "add_once", active_groups_are_passed_over),
    (failover_is_final, failover, "_fence", nothing_is_fenced),
    (failover_is_final, MirrorControl, "set_paused", nothing_is_paused),
    (failover_is_called_twice, failover, "_as_before", later_state_counts),
    (topic_is_deleted, Reports, "add", is_not_told),
    (copy_has_more_partitions, Reports, "add_once", active_groups_are_passed_over),
]


@pytest.mark.parametrize("story", STORIES, ids=[each.__name__ for each in STORIES])
@seeds(1)
def test_case_is_handled_and_told(story: Story, seed: int) -> None:
    with World(seed) as world:
        world.run(story(world))


@pytest.mark.parametrize(
    ("story", "where", "name", "mutant"), MUTANTS, ids=[f"{each[0].__name__}-{each[2]}" for each in MUTANTS]
)
def test_each_rule_is_needed(
    story: Story, where: Any, name: str, mutant: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    find_mutant(story, where, name, mutant, monkeypatch)
