"""Cases that need two logs, or two processes, to be set up exactly; each rule of the mirror that they need has a
mutant, with which the case must fail.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.configs import ConfigChange, ConfigResource
from strandline.client.errors import error_for
from strandline.mirror import session
from strandline.mirror.copying import copier as copying
from strandline.mirror.copying.copier import Copier, GroupName
from strandline.mirror.reports import Reports
from strandline.sim.world import PORT, World
from tests.sim.mirror_cases import Story, copied, create_topic, find_mutant, journal_of, write
from tests.sim.mirrored_clusters import Clusters
from tests.sim.seeds import seeds

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
RECORDS = 60


# Two mirrors into one topic


async def two_flows_into_one_topic(world: World) -> None:
    north = world.add_node(3)
    north.cluster_name = "a third cluster"
    clusters = Clusters(
        world,
        clusters="east,west,north",
        north_bootstrap_servers=f"{north.host}:{PORT}",
        replication_policy_class=IDENTITY,
        **{"north->west_enabled": "true"},
    )
    await world.start_all()
    sources = {"east->west": clusters.east, "north->west": north}
    for node in sources.values():
        await create_topic(clusters, node)
    clusters.start_mirror()
    try:
        values = {flow: [b"%s %03d" % (flow.encode(), n) for n in range(RECORDS)] for flow in sources}
        await asyncio.gather(*(write(clusters, node, values[flow], 0.2) for flow, node in sources.items()))
        found = await copied(clusters, "t", 2 * RECORDS)
        await asyncio.sleep(10)  # events travel with the next transaction, or after a while
        journals = {flow: await journal_of(clusters, flow) for flow in sources}
        originals = {flow: (await clusters.read(node, "t"))[0] for flow, node in sources.items()}
    finally:
        await clusters.kill_mirrors()
    assert len(found) == 2 * RECORDS
    places = {value: offset for offset, value in found}
    for flow, journal in journals.items():
        assert [value for _, value in found if value in values[flow]] == values[flow]
        for offset, value in originals[flow]:
            translated = journal.to_target(TopicPartition("t", 0), offset)
            assert translated == places[value], "a translated offset is not that of the copy"
        assert {each.kind for each in journal.events} & {"foreign-records", "target-not-empty"}


def first_entry_counts(original: Any) -> Any:
    """Rule 6 of `copier` switched off: where batches are other than foreseen, the journal is not told again."""

    def ranges(self: Any, appended: Any) -> Any:
        foreseen = copying.foreseen_ranges(appended)
        actual = original(self, appended)
        return foreseen or actual

    return ranges


# A partition whose records the target refuses


async def one_partition_is_refused(world: World) -> None:
    clusters = Clusters(world, sync_topic_configs_enabled="false", strandline_transaction_bytes="20000")
    await world.start_all()
    await create_topic(clusters, clusters.east)
    await create_topic(clusters, clusters.west, "east.t", max_message_bytes="1000")
    clusters.start_mirror()
    try:
        await write(clusters, clusters.east, [b"x" * 5000])
        values = [b"small %02d" % n for n in range(RECORDS)]
        await write(clusters, clusters.east, values, 0.2, partition=1)
        found = await copied(clusters, "east.t", RECORDS, partition=1)
        assert [value for _, value in found] == values
        assert not (await clusters.read(clusters.west, "east.t"))[0]
        async with clusters.client(Admin, clusters.west) as admin:
            change = ConfigChange("max.message.bytes", "100000")
            await admin.alter_configs({ConfigResource.topic("east.t"): [change]})
        assert len(await copied(clusters, "east.t", 1)) == 1
        journal = await journal_of(clusters, "east->west")
        assert "refused-by-target" in {each.kind for each in journal.events}, "a refusal is not told"
    finally:
        await clusters.kill_mirrors()


def nothing_is_left_alone(original: Any) -> Any:
    """Rule 5 of `copier` switched off: a refused partition is read again at once, with the others."""

    def pause(self: Any) -> bool:
        self._refused.clear()
        return True

    return pause


# A process that was taken for dead


async def process_is_cut_off_and_replaced(world: World) -> None:
    clusters = Clusters(
        world,
        west_consumer_session_timeout_ms="6000",
        west_consumer_heartbeat_interval_ms="1000",
        strandline_transaction_timeout_ms="60000",
    )
    await world.start_all()
    await create_topic(clusters, clusters.east)
    clusters.start_mirror("one", "one's host")
    values = [b"%03d" % number for number in range(4 * RECORDS)]
    writing = world.start_task(write(clusters, clusters.east, values, 0.1))
    try:
        await copied(clusters, "east.t", 10)
        await clusters.wait_for_transaction("one")
        # What it sends from now on arrives much later, in order.
        world.network.cut("one's host", clusters.west.host)
        clusters.start_mirror("two", "two's host")
        await asyncio.sleep(20)
        world.network.heal()
        await writing
        found = await copied(clusters, "east.t", len(values))
        await asyncio.sleep(10)
        found = await copied(clusters, "east.t", len(values))
    finally:
        await clusters.kill_mirrors()
    assert [value for _, value in found] == values, "the copy is not the committed records, once and in order"


def without_generation(original: Any) -> Any:
    """Rule 2 of `copier` switched off: the offsets are committed in the group's name alone."""

    async def send(self: Any, offsets: Any) -> None:
        member, self._member = self._member, GroupName(self._member.group_metadata.group_id)
        try:
            await original(self, offsets)
        finally:
            self._member = member

    return send


# A transaction that fails for another reason than a refusal


def failing_once(original: Any) -> Any:
    """Stands for the wait for acknowledgements: the third one fails, as if replicas were missing."""
    calls = itertools.count(1)

    async def acknowledged(batch: Any) -> None:
        await original(batch)
        if next(calls) == 3:
            raise error_for(ErrorCode.NOT_ENOUGH_REPLICAS, "the third batch")

    return acknowledged


async def transaction_fails(world: World) -> None:
    clusters = Clusters(world)
    await world.start_all()
    await create_topic(clusters, clusters.east)
    values = [b"%03d" % number for number in range(RECORDS)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "_acknowledged", failing_once(copying._acknowledged))
        clusters.start_mirror()
        try:
            await write(clusters, clusters.east, values, 0.1)
            found = await copied(clusters, "east.t", len(values))
        finally:
            await clusters.kill_mirrors()
    assert [value for _, value in found] == values, "the copy is not the committed records, once and in order"


# A topic that is created again while no mirror runs


async def topic_is_created_again(world: World) -> None:
    clusters = Clusters(world)
    await world.start_all()
    await create_topic(clusters, clusters.east)
    clusters.start_mirror()
    old, new = [b"old %02d" % n for n in range(10)], [b"new %02d" % n for n in range(30)]
    try:
        await write(clusters, clusters.east, old)
        await copied(clusters, "east.t", len(old))
        await clusters.kill_mirror()
        async with clusters.client(Admin, clusters.east) as admin:
            await admin.delete_topics(["t"])
        await asyncio.sleep(5)
        await create_topic(clusters, clusters.east)
        await write(clusters, clusters.east, new)
        clusters.start_mirror()
        found = await copied(clusters, "east.t", len(old) + len(new))
        journal = await journal_of(clusters, "east->west")
    finally:
        await clusters.kill_mirrors()
    assert [value for _, value in found] == old + new
    events = [each.kind for each in journal.events if each.where == "t-0"]
    assert events == ["topic-recreated"], "a new topic is not told"


def topic_id_is_passed_over(original: Any) -> Any:
    """The topic's id beside a committed offset is not looked at."""
    return lambda committed: (original(committed)[0], "")


# Records that retention deletes before they are copied


async def retention_overtakes(world: World) -> None:
    clusters = Clusters(world)
    await world.start_all()
    await create_topic(clusters, clusters.east)
    clusters.start_mirror()
    values = [b"%03d" % number for number in range(40)]
    try:
        await write(clusters, clusters.east, values[:10])
        await copied(clusters, "east.t", 10)
        await clusters.kill_mirror()
        await write(clusters, clusters.east, values[10:])
        async with clusters.client(Admin, clusters.east) as admin:
            await admin.delete_records({TopicPartition("t", 0): 25})
        clusters.start_mirror()
        found = await copied(clusters, "east.t", 25)
        journal = await journal_of(clusters, "east->west")
    finally:
        await clusters.kill_mirrors()
    assert [value for _, value in found] == values[:10] + values[25:]
    events = [(each.kind, each.first_offset, each.offset_count) for each in journal.events]
    assert events == [("deleted-before-copied", 10, 15)], "records that will never arrive are not told"


def everything_is_paused(original: Any) -> Any:
    """A transaction that fails without a refusal pauses every partition."""

    def pause(self: Any) -> bool:
        self._reader.pause(*self._reader.assignment())
        return False

    return pause


def nothing_is_read_again(original: Any) -> Any:
    """Rule 3 of `copier` switched off."""
    return lambda self: None


def nothing_is_told(original: Any) -> Any:
    """Rule 4 of `copier` switched off."""
    return lambda self, *where: None


STORIES: tuple[Story, ...] = (
    two_flows_into_one_topic,
    one_partition_is_refused,
    process_is_cut_off_and_replaced,
    transaction_fails,
    topic_is_created_again,
    retention_overtakes,
)
MUTANTS: list[tuple[Story, Any, str, Callable[[Any], Any]]] = [
    (two_flows_into_one_topic, Copier, "_ranges", first_entry_counts),
    (one_partition_is_refused, Copier, "_pause_refused", nothing_is_left_alone),
    (process_is_cut_off_and_replaced, Copier, "_send_offsets", without_generation),
    (transaction_fails, Copier, "_pause_refused", everything_is_paused),
    (transaction_fails, Copier, "_rewind", nothing_is_read_again),
    (topic_is_created_again, session, "decode_progress", topic_id_is_passed_over),
    (retention_overtakes, Reports, "deleted", nothing_is_told),
]


@pytest.mark.parametrize("story", STORIES, ids=[each.__name__ for each in STORIES])
@seeds(1)
def test_case_is_copied_exactly_and_told(story: Story, seed: int) -> None:
    with World(seed) as world:
        world.run(story(world))


@pytest.mark.parametrize(
    ("story", "where", "name", "mutant"), MUTANTS, ids=[each[3].__name__ for each in MUTANTS]
)
def test_each_rule_is_needed(
    story: Story, where: Any, name: str, mutant: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    find_mutant(story, where, name, mutant, monkeypatch)
