"""Committed offsets: the decisions after a refusal. The coordinator is a list of responses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.config.config import ClientConfig
from strandline.client.consumer.commits import Commits
from strandline.client.consumer.committed_offsets import CommitIdentity, CommittedOffsets, NotAMember
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import CommitFailedError, KafkaError, KafkaTimeoutError
from strandline.client.net.backoff import Backoff
from strandline.telemetry.counters import Counters
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

PLACE = TopicPartition("orders", 0)


class Coordinator:
    """Responds to commits with these codes, then with success."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.epochs: list[int] = []

    def version(self, _request: object, at_most: int | None = None) -> int:
        return 9

    async def call(self, request: Any, _response: object, *, version: int) -> OffsetCommitResponse:
        self.epochs.append(request.generation_id_or_member_epoch)
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
        return OffsetCommitResponse(
            topics=(OffsetCommitResponseTopic(name="orders", partitions=(partition,)),)
        )

    async def connection(self, _kind: object, _name: str, _deadline: float) -> Coordinator:
        return self

    def forget(self, _kind: object, _name: str) -> None:
        pass


def commit(
    coordinator: Coordinator, memberships: Sequence[CommitIdentity | NotAMember], seconds: float = 20
) -> None:
    """Each attempt sees the next of these memberships, and then the last one."""

    async def main() -> None:
        now = asyncio.get_running_loop().time
        asked = iter(memberships)
        latest = memberships[0]

        def membership() -> CommitIdentity | NotAMember:
            nonlocal latest
            latest = next(asked, latest)
            return latest

        cluster: Any = SimpleNamespace(
            config=ClientConfig.consumer(bootstrap_servers="127.0.0.1:1"),
            coordinators=coordinator,
            metadata=SimpleNamespace(topics={}),
            now=now,
            backoff=lambda: Backoff(1, 2, lambda below: below // 2),
        )
        offsets = CommittedOffsets(cluster, "g", membership)
        await offsets.commit({PLACE: OffsetAndMetadata(7)}, now() + seconds)

    asyncio.run(main())


def test_a_stale_epoch_is_tried_again_until_the_heartbeat_has_brought_the_next() -> None:
    coordinator = Coordinator(ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH)
    old, new = CommitIdentity(3, "m"), CommitIdentity(4, "m")
    # Before a request, in it, and (twice) after its refusal: the second request is built before the response came.
    commit(coordinator, [old] * 8 + [new])
    assert coordinator.epochs == [3, 3, 4]


def test_a_stale_epoch_that_stays_is_told_when_time_is_over() -> None:
    coordinator = Coordinator(*[ErrorCode.STALE_MEMBER_EPOCH] * 1000)
    with pytest.raises(KafkaTimeoutError, match="STALE_MEMBER_EPOCH"):
        commit(coordinator, [CommitIdentity(3, "m")], seconds=0.05)


def test_a_consumer_without_membership_has_no_next_epoch_to_wait_for() -> None:
    coordinator = Coordinator(*[ErrorCode.STALE_MEMBER_EPOCH] * 10)
    with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
        commit(coordinator, [CommitIdentity()])
    assert len(coordinator.epochs) == 1


def test_a_commit_of_an_earlier_generation_is_not_tried_again() -> None:
    coordinator = Coordinator(ErrorCode.ILLEGAL_GENERATION)
    with pytest.raises(CommitFailedError, match="moved on"):
        commit(coordinator, [CommitIdentity(3, "m")])
    assert len(coordinator.epochs) == 1


def test_a_coordinator_that_moved_is_asked_again() -> None:
    coordinator = Coordinator(ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    commit(coordinator, [CommitIdentity(3, "m")])
    assert coordinator.epochs == [3, 3, 3]


def held_commits() -> tuple[Any, Commits, list[int], asyncio.Event]:
    """Returns the cluster, commits that begin and do not end before the event, and the offsets of those that have
    begun."""
    cluster: Any = SimpleNamespace(
        config=ClientConfig.consumer(bootstrap_servers="127.0.0.1:1", group_id="g"),
        now=asyncio.get_running_loop().time,
    )
    commits = Commits(cluster, CommitIdentity, Counters())
    begun: list[int] = []
    may_end = asyncio.Event()

    async def commit(offsets: dict[TopicPartition, OffsetAndMetadata], _deadline: float) -> None:
        begun.append(offsets[PLACE].offset)
        await may_end.wait()

    commits.committed = SimpleNamespace(commit=commit)  # type: ignore[assignment]
    return cluster, commits, begun, may_end


def test_cancelling_one_asynchronous_commit_leaves_the_others_and_their_order() -> None:
    async def main() -> None:
        cluster, commits, begun, may_end = held_commits()
        tasks = [commits.commit_async({PLACE: OffsetAndMetadata(offset)}) for offset in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert begun == [0], "a commit after a cancelled one still waits for what comes before it"
        tasks[0].cancel()
        may_end.set()
        await commits.commit_before_revocation({}, cluster.now() + 60)
        assert begun == [0, 2, 3]
        assert [task.cancelled() for task in tasks] == [True, True, False, False]

    asyncio.run(main())


@pytest.mark.parametrize("is_joining", [False, True])
def test_a_consumer_that_is_no_member_sends_no_commit(is_joining: bool) -> None:
    coordinator = Coordinator()
    with pytest.raises(CommitFailedError, match="REBALANCE_IN_PROGRESS" if is_joining else "moved on"):
        commit(coordinator, [NotAMember(is_joining=is_joining)])
    assert coordinator.epochs == []


def test_a_member_that_is_thrown_out_between_two_attempts_stops() -> None:
    coordinator = Coordinator(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    with pytest.raises(CommitFailedError):
        commit(coordinator, [CommitIdentity(3, "m")] * 3 + [NotAMember()])
    assert coordinator.epochs == [3]


def test_commits_are_carried_out_in_the_order_in_which_they_were_asked_for() -> None:
    async def main() -> None:
        cluster, commits, begun, may_end = held_commits()
        commits.commit_async({PLACE: OffsetAndMetadata(10)})
        with pytest.raises(KafkaTimeoutError, match="earlier commits"):
            await commits.commit({PLACE: OffsetAndMetadata(15)}, cluster.now() + 0.01)
        waited_for = asyncio.create_task(commits.commit({PLACE: OffsetAndMetadata(20)}, cluster.now() + 60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        commits.commit_async({PLACE: OffsetAndMetadata(30)})
        await asyncio.sleep(0)
        assert begun == [10]
        may_end.set()
        await waited_for
        await commits.close(cluster.now() + 60)
        assert begun == [10, 20, 30]

    asyncio.run(main())
