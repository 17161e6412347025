"""The metadata log: its four rules, and what a restart makes of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import cast

import pytest

from strandline.base.errors import ErrorCode
from strandline.broker.api import k59_fetch_snapshot
from strandline.broker.metadata.raft_log import render_snapshot, snapshot_name
from strandline.broker.metadata.raft_messages import fetch_snapshot_request
from strandline.broker.server.connection import RequestContext
from strandline.controller import image_records
from strandline.controller.state import ControllerState
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey
from strandline.quorum.roles import Leader, ReplicaProgress
from strandline.wire.api.k03_metadata import MetadataRequest
from strandline.wire.api.k19_create_topics import CreateTopicsRequest
from strandline.wire.record_batch import headers_in
from tests.batches import batch
from tests.disks import WatchedDisk
from tests.unit.broker.requests import (
    append,
    create,
    delete_records,
    delete_topic,
    fetch,
    fetched,
    list_offset,
    new_topics,
    records_of,
)
from tests.unit.broker.watched_disk import disk_of
from tests.unit.broker.world import World, in_world


def state_of(world: World) -> ControllerState:
    assert world.broker.controller_runtime is not None
    return world.broker.controller_runtime.state


def contents(controller: ControllerState) -> object:
    image = controller.image
    return (image.topics, image.brokers, image.configs, image.features, image.next_producer_id)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@in_world()
async def test_records_of_a_plan_are_one_batch(world: World) -> None:
    client = world.connect()
    await create(client, partitions=5, retention_ms="7")
    data = (world.data / "__cluster_metadata-0" / "00000000000000000000.log").read_bytes()
    counts = [header.record_count for _, header in headers_in(data)]
    assert counts[-1] == 1 + 1 + 5, "the topic, its config, its partitions"


@in_world()
async def test_the_next_plan_sees_what_is_not_committed_yet_and_clients_do_not(world: World) -> None:
    first, second, third = (world.connect() for _ in range(3))
    world.workers.hold()
    first.ask(new_topics("t"), 7)
    second.ask(new_topics("t"), 7)
    await turns()
    assert "t" in state_of(world).image.topics
    assert "t" not in world.broker.image.topics
    response = await third.call(MetadataRequest(topics=None), 9)
    assert response.topics == ()
    world.workers.go_on()
    codes = [(await c.response(CreateTopicsRequest, 7))[1].topics[0].error_code for c in (first, second)]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


@in_world()
async def test_nothing_is_acknowledged_before_it_is_synced(world: World) -> None:
    client = world.connect()
    world.workers.hold()
    client.ask(new_topics("t"), 7)
    assert await client.is_silent()
    world.workers.go_on()
    await client.response(CreateTopicsRequest, 7)


@in_world(disk=WatchedDisk)
async def test_plans_that_arrive_during_a_sync_share_the_next_one(world: World) -> None:
    clients = [world.connect() for _ in range(10)]
    world.workers.hold()
    for number, client in enumerate(clients):
        client.ask(new_topics(f"t{number}"), 7)
        await turns()
    disk_of(world).syncs.clear()
    world.workers.go_on()
    for client in clients:
        await client.response(CreateTopicsRequest, 7)
    syncs = [
        path
        for path in disk_of(world).syncs
        if path.endswith("__cluster_metadata-0/00000000000000000000.log")
    ]
    assert len(syncs) == 2


@in_world()
async def test_every_start_is_a_new_epoch_noted_before_it_is_used(world: World) -> None:
    path = world.data / "__cluster_metadata-0" / "quorum-state"
    epochs = []
    for clean in (True, False, True):
        state = json.loads(path.read_bytes())
        assert (state["leaderId"], state["data_version"]) == (1, 1)
        epochs.append(state["leaderEpoch"])
        assert world.broker.quorum.core.epoch == epochs[-1]
        await world.restart(clean=clean)
    assert epochs == sorted(set(epochs))
    data = (world.data / "__cluster_metadata-0" / "00000000000000000000.log").read_bytes()
    leaders = [header.leader_epoch for _, header in headers_in(data) if header.is_control]
    assert leaders == [*epochs, epochs[-1] + 1], "each begins with the announcement of its leader"


@in_world()
async def test_a_quorum_state_that_cannot_be_read_costs_nothing(world: World) -> None:
    await create(world.connect())
    path = world.data / "__cluster_metadata-0" / "quorum-state"
    for content in (b"", b"{", b'{"leaderId":1}', b"[]", b"\xff\xff"):
        before = world.broker.quorum.core.epoch
        await world.stop()
        path.write_bytes(content)
        await world.start()
        assert world.broker.quorum.core.epoch > before
        assert len(world.said("repaired")) == 1
        world.lines.clear()
    assert "t" in world.broker.image.topics


@in_world()
async def test_a_restart_arrives_at_the_same_image(world: World) -> None:
    client = world.connect()
    for name in ("a", "b", "c"):
        await create(client, name, partitions=3, retention_ms="77")
    await delete_topic(client, "b")
    before = world.broker.image.topics, world.broker.image.configs
    for clean in (True, False):
        await world.restart(clean=clean)
        assert {n: t.topic_id for n, t in world.broker.image.topics.items()} == {
            n: t.topic_id for n, t in before[0].items()
        }
        assert world.broker.image.configs == before[1]
        assert contents(state_of(world)) == (
            world.broker.image.topics,
            world.broker.image.brokers,
            world.broker.image.configs,
            world.broker.image.features,
            world.broker.image.next_producer_id,
        )
        assert world.broker.configs.topic("a").retention_ms == 77


@in_world()
async def test_a_torn_end_of_the_log_is_cut_and_acknowledged_records_stay(world: World) -> None:
    await create(world.connect())
    world.crash()
    path = world.data / "__cluster_metadata-0" / "00000000000000000000.log"
    with path.open("ab") as file:
        file.write(batch(3)[:50])
    await world.start()
    assert "t" in world.broker.image.topics
    assert len(world.said("repaired")) == 1


@in_world()
async def test_a_directory_that_no_topic_has_is_set_aside_and_never_removed(world: World) -> None:
    """A metadata log that lost its end must not cost the records of the topics it no longer knows."""
    client = world.connect()
    await create(client)
    await append(client, batch(2))
    await world.stop()
    (world.data / "gone-0").mkdir()
    for name in ("partition.metadata", "00000000000000000000.log"):
        (world.data / "gone-0" / name).write_bytes((world.data / "t-0" / name).read_bytes())
    await world.start()
    world.clock.ms += 10**9
    await world.broker.removal.remove_due()
    strays = [path for path in world.data.iterdir() if path.name.endswith("-stray")]
    assert len(strays) == 1
    assert strays[0].name.startswith("gone-0.")
    assert (strays[0] / "00000000000000000000.log").exists()
    assert len(world.said("stray")) == 1
    await world.restart(clean=True)
    assert strays[0].exists()


@in_world()
async def test_partition_metadata_that_cannot_be_read_costs_no_record(world: World) -> None:
    client = world.connect()
    topic_id = await create(client)
    await append(client, batch(2))
    path = world.data / "t-0" / "partition.metadata"
    good = path.read_bytes()
    for content in (b"", good[:-3], b"\xff" * 40):
        await world.stop()
        path.write_bytes(content)
        await world.start()
        got = fetched(await world.connect().call(fetch((0, 0), topic_id=topic_id), 13))[0]
        assert len(records_of(got)) == 2
        assert path.read_bytes() == good
        assert len(world.said("partition.metadata")) == 1
        world.lines.clear()


@in_world()
async def test_another_topic_s_directory_of_the_same_name_is_not_taken_for_its_own(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(2))
    await world.stop()
    path = world.data / "t-0" / "partition.metadata"
    path.write_bytes(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZA")
    await world.start()
    assert records_of(fetched(await world.connect().call(fetch((0, 0)), 12))[0]) == []
    assert len([p for p in world.data.iterdir() if p.name.endswith("-stray")]) == 1


@in_world(log_segment_delete_delay_ms="1000")
async def test_a_deleted_topic_s_directory_is_renamed_at_once_and_removed_after_the_delay(
    world: World,
) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    await delete_topic(client)

    def doomed() -> list[str]:
        return [path.name for path in world.data.iterdir() if path.name.startswith("t-0")]

    assert len(doomed()) == 1
    assert doomed()[0].endswith("-delete")
    world.clock.ms += 999
    await world.broker.removal.remove_due()
    assert len(doomed()) == 1
    world.clock.ms += 1
    await world.broker.removal.remove_due()
    assert doomed() == []


@in_world()
async def test_files_that_a_crash_left_of_a_deleted_topic_are_removed_by_the_next_start(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    await delete_topic(client)
    await world.restart(clean=False)
    await world.broker.removal.remove_due()
    assert not [path for path in world.data.iterdir() if path.name.startswith("t-0")]


@pytest.mark.parametrize("crash_between", [False, True])
def test_a_topic_of_a_deleted_one_s_name_inherits_nothing_of_it(tmp_path: Path, crash_between: bool) -> None:
    """Not its log start, which would hide the new records or take them for the remains of a lost log."""

    @in_world()
    async def scenario(world: World) -> None:
        client = world.connect()
        await create(client)
        await append(client, batch(9))
        await delete_records(client, 5)
        await world.broker.maintenance.checkpoint_recovery_points()
        await world.broker.maintenance.checkpoint_high_watermarks()
        await delete_topic(client)
        if crash_between:
            await world.restart(clean=False)
            client = world.connect()
        await create(client)
        await append(client, batch(3))
        await world.restart(clean=False)
        client = world.connect()
        assert (await list_offset(client, -2)).offset == 0
        assert len(records_of(fetched(await client.call(fetch((0, 0)), 12))[0])) == 3
        assert world.said("repaired") == []

    scenario(tmp_path)


@in_world()
async def test_a_snapshot_that_is_written_while_a_later_one_is_fetched_does_not_replace_it(
    world: World,
) -> None:
    quorum = world.broker.quorum
    for name in ("a", "b"):
        await create(world.connect(), name)
    records = image_records.records_of(world.broker.image)
    world.workers.hold()
    making = asyncio.ensure_future(quorum.make_snapshot(records, quorum.applied_offset - 1))
    await turns()
    later = OffsetAndEpoch(quorum.applied_offset, quorum.core.epoch)
    quorum.store.write_snapshot(later, render_snapshot(records, 0, later.epoch))
    quorum._adopt(later)
    world.workers.go_on()
    await making
    assert quorum.store.snapshot == later
    await quorum.make_snapshot(records, quorum.applied_offset)
    snapshots = [path.name for path in (world.data / "__cluster_metadata-0").glob("*.checkpoint")]
    assert snapshots == [snapshot_name(later)]
    await world.restart(clean=True)
    assert set(world.broker.image.topics) == {"a", "b"}


@in_world()
async def test_a_log_that_had_left_the_committed_one_does_not_go_on_behind_a_snapshot(world: World) -> None:
    """Its end is of an epoch before the snapshot's, so that what it has behind the snapshot was never committed."""
    quorum = world.broker.quorum
    await create(world.connect(), "a")
    records = image_records.records_of(world.broker.image)
    await create(world.connect(), "never-committed")
    later = OffsetAndEpoch(quorum.store.end_offset - 1, quorum.core.epoch + 3)
    quorum.store.write_snapshot(later, render_snapshot(records, 0, later.epoch))
    await world.restart(clean=False)
    store = world.broker.quorum.store
    assert set(world.broker.image.topics) == {"a"}
    end = store.end_offset
    diverged = OffsetAndEpoch(end - 1, world.broker.quorum.core.epoch + 3)
    store.write_snapshot(diverged, render_snapshot(records, 0, diverged.epoch))
    store.adopt_snapshot(diverged)
    assert (store.start_offset, store.end_offset) == (end - 1, end - 1)
    assert store.synced().epochs == ((diverged.epoch, end - 1),)


@in_world()
async def test_a_node_that_asks_for_a_piece_of_a_snapshot_counts_as_heard_of(world: World) -> None:
    quorum = world.broker.quorum
    await quorum.make_snapshot(image_records.records_of(world.broker.image), quorum.applied_offset)
    role, snapshot = quorum.core.role, quorum.store.snapshot
    assert isinstance(role, Leader)
    assert snapshot is not None
    other = ReplicaKey(2, b"\x02" * 16)
    progress = role.replicas[other] = ReplicaProgress()
    request = fetch_snapshot_request(world.broker.cluster_id, other, role.epoch, snapshot, 0, 1000)
    response = k59_fetch_snapshot.handle(world.broker, cast("RequestContext", None), request)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert progress.last_fetch >= 0
