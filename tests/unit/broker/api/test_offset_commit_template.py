"""Commits that are like the last one are read by a pattern: they are checked and responded to as if they were
decoded."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode
from strandline.broker.api.offset_commit_template import CommitTemplate
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from tests.group_requests import commit, fetch_offsets, fitted
from tests.unit.broker.requests import create, delete_topic
from tests.unit.broker.world import Client, World, in_world


async def committing(world: World) -> Client:
    """Returns a client whose commits are read by a template."""
    client = world.connect()
    await create(client, "orders", partitions=4)
    await client.call(FindCoordinatorRequest(coordinator_keys=("g",)), 4)
    for offset in range(2):
        assert await codes(client, commit("g", {0: offset, 3: offset})) == [0, 0]
    return client


async def codes(client: Client, request: OffsetCommitRequest, version: int = 9) -> list[int]:
    response = await client.call(fitted(request, version), version)
    return [int(each.error_code) for topic in response.topics for each in topic.partitions]


async def offsets(client: Client, group: str = "g") -> dict[int, tuple[int, int]]:
    response = await client.call(fitted(fetch_offsets(group, partitions=(0, 3)), 9), 9)
    found = response.groups[0].topics[0].partitions
    return {each.partition_index: (each.committed_offset, each.committed_leader_epoch) for each in found}


def read_by_pattern(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Returns True if each commit from now on was read by a template."""
    read = CommitTemplate.read
    was_read: list[bool] = []

    def counted(self: CommitTemplate, *given: object) -> object:
        found = read(self, *given)  # type: ignore[arg-type]
        was_read.append(found is not None)
        return found

    monkeypatch.setattr(CommitTemplate, "read", counted)
    return was_read


@in_world()
async def test_the_third_commit_is_read_by_a_pattern_and_counts(world: World) -> None:
    client = await committing(world)
    with pytest.MonkeyPatch.context() as monkeypatch:
        was_read = read_by_pattern(monkeypatch)
        assert await codes(client, commit("g", {0: 70, 3: 1 << 40}, leader_epoch=5)) == [0, 0]
        assert await codes(client, commit("g", {0: 71, 3: -1})) == [0, 0]
    assert was_read == [True, True]
    assert await offsets(client) == {0: (71, -1), 3: (-1, -1)}


@in_world()
async def test_a_commit_of_other_partitions_keeps_what_was_committed_of_these(world: World) -> None:
    client = await committing(world)
    assert await codes(client, commit("g", {0: 70, 3: 71})) == [0, 0]
    assert await codes(client, commit("g", {3: 72})) == [0]
    assert await codes(client, commit("g", {0: 73, 2: 1})) == [0, 0]
    assert await offsets(client) == {0: (73, -1), 3: (72, -1)}


@in_world()
async def test_other_groups_and_members_and_notes_do_not_fit(world: World) -> None:
    client = await committing(world)
    with pytest.MonkeyPatch.context() as monkeypatch:
        was_read = read_by_pattern(monkeypatch)
        assert await codes(client, commit("h", {0: 8, 3: 9})) == [0, 0]
        unknown = [ErrorCode.UNKNOWN_MEMBER_ID] * 2
        assert await codes(client, commit("g", {0: 8, 3: 9}, generation=3)) == unknown
        assert await codes(client, commit("g", {0: 8, 3: 9}, metadata="a note")) == [0, 0]
        assert await codes(client, commit("g", {0: 10, 3: 11}), version=8) == [0, 0]
    assert True not in was_read
    assert await offsets(client, "h") == {0: (8, -1), 3: (9, -1)}
    assert await offsets(client) == {0: (10, -1), 3: (11, -1)}


@in_world()
async def test_no_pattern_is_made_where_each_commit_is_of_another_partition(world: World) -> None:
    client = await committing(world)
    with pytest.MonkeyPatch.context() as monkeypatch:
        made: list[object] = []
        monkeypatch.setattr(CommitTemplate, "__init__", lambda self, *_: made.append(self))
        for offset in range(3):
            assert await codes(client, commit("g", {0: offset, 1: offset})) == [0, 0]
            assert await codes(client, commit("g", {2: offset, 3: offset + 10})) == [0, 0]
    assert not made
    assert await offsets(client) == {0: (2, -1), 3: (12, -1)}


@in_world()
async def test_a_topic_that_is_deleted_is_unknown_to_the_next_commit(world: World) -> None:
    client = await committing(world)
    await delete_topic(client, "orders")
    unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert await codes(client, commit("g", {0: 8, 3: 9})) == unknown


@in_world()
async def test_a_coordinator_that_has_stopped_is_not_asked(world: World) -> None:
    client = await committing(world)
    groups = world.broker.groups
    groups._end(groups.partition_of("g"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        was_read = read_by_pattern(monkeypatch)
        found = await codes(client, commit("g", {0: 8, 3: 9}))
    assert found == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    assert was_read == [False]
