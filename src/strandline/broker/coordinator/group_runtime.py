"""Carries out the decisions of one shard of groups, by the rules of `runtime` and these:

1. A request that waits longer than `offsets.commit.timeout.ms` gets COORDINATOR_NOT_AVAILABLE.
2. Records that a new coordinator finds above the high watermark may be on this broker only, or may have been
   acknowledged. Until that is known it shows no offsets: neither one that could be taken back nor one that is older
   than an acknowledged one.
3. Offsets that are committed in a transaction are in a batch of its producer; the transaction's marker decides about
   them.
"""

from __future__ import annotations

import asyncio
from struct import error as StructError
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.base.tokens import Token
from strandline.broker.coordinator import group_events
from strandline.broker.coordinator.runtime import CommitWaiter, CoordinatorRuntime, coordinator_error
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.delayed_produce import PendingAppend
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.broker.server.request_batching import RequestBatcher
from strandline.groups.classic.rebalance import join_refused, sync_refused
from strandline.groups.committed_offset import OffsetChanges
from strandline.groups.committed_view import CommittedView
from strandline.groups.consumer.requests import Join, heartbeat_refused
from strandline.groups.result import CoordinatorResult, ResponseValue
from strandline.groups.shard import GroupShard
from strandline.partition.open_transactions import VerificationGuard
from strandline.telemetry import loggers
from strandline.wire.api.k11_join_group import JoinGroupResponse
from strandline.wire.api.k14_sync_group import SyncGroupResponse
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from strandline.wire.compiler import EncodeError
from strandline.wire.record_batch import batch_of, small_records
from strandline.wire.records import offset_commits
from strandline.wire.records.markers import Marker
from strandline.wire.records.offsets_framing import encode_key, encode_value

# A batch must fit into `max.message.bytes`; a commit without metadata takes about a hundred bytes.
_COMMITS_PER_BATCH_MAX: Final = 1000


class GroupRuntime(CoordinatorRuntime):
    """One loaded shard of groups, and the log to which its decisions are written."""

    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        batcher: RequestBatcher,
        replica: Replica,
        shard: GroupShard,
        codec: int,
    ) -> None:
        super().__init__(node, replicas, replica)
        self._batcher = batcher
        self.shard = shard
        self._codec = codec
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._uncommitted: dict[CommitWaiter, CoordinatorResult] = {}
        self._committed = CommittedView(shard.offsets, shard.topics)
        self._is_queueing = False  # True if more commits may come in this iteration of the loop
        self._queued = CoordinatorResult()
        self._queued_count = 0  # the number of queued offsets
        self._joining: list[Join] = []
        self._found_end = self._end_offset
        self._events = node.events.named(loggers.GROUPS)
        self._commit_timeout_s = node.config.int("offsets.commit.timeout.ms") / 1000

    def run(self, result: CoordinatorResult) -> None:
        """Writes the records of a result, then sends its responses."""
        if result.has_records:
            self.write_queued()
        following: CoordinatorResult | None = result
        while following is not None:
            if following.has_records:
                following = self._write(following)
            else:
                self._respond_when_settled(following)
                following = None
        self._arm()

    def commit(self, changes: list[OffsetChanges], token: Token, response: ResponseValue) -> None:
        """Writes the commits of one iteration of the loop together, because a batch takes longer than its records.
        While requests are handled as they arrive, the first commit is written at once, so that it need not wait."""
        if not changes:
            self.run(CoordinatorResult(responses=[(token, response)]))
            return
        if not self._is_queueing:
            self._is_queueing = True
            if not self._batcher.before_responses(self._end_iteration):
                asyncio.get_running_loop().call_soon(self._end_iteration)
                self.run(CoordinatorResult(responses=[(token, response)], commits=changes))
                return
        self._queued.commits += changes
        self._queued.responses.append((token, response))
        for each in changes:
            self._queued_count += len(each.partitions)
        if self._queued_count >= _COMMITS_PER_BATCH_MAX:
            self.write_queued()

    def join(self, join: Join) -> None:
        """Plans consumers that join in one iteration of the loop together, if possible: an assignment for each of them
        takes longer, and the next one takes most of it back."""
        if not self._joining:
            asyncio.get_running_loop().call_soon(self._plan_joins)
        self._joining.append(join)

    def _plan_joins(self) -> None:
        joining, self._joining = self._joining, []
        by_group: dict[str, list[Join]] = {}
        for join in joining:
            by_group.setdefault(join.request.group_id, []).append(join)
        for joins in by_group.values():
            together = self.shard.consumer_joins(joins, self.now()) if len(joins) > 1 else None
            if together is not None:
                self.run(together)
                continue
            for request, caller, token in joins:
                self.run(self.shard.consumer_heartbeat(request, caller, token, self.now()))

    def _end_iteration(self) -> None:
        self._is_queueing = False
        self.write_queued()

    def write_queued(self) -> None:
        """Writes queued commits and joins. This comes before every other decision about the groups, by a request, by
        time or because a topic was deleted: a decision that does not see them, and is written after them, would undo
        them."""
        if self._joining:
            self._plan_joins()
        if self._queued_count:
            queued, self._queued = self._queued, CoordinatorResult()
            self._queued_count = 0
            following = self._write(queued)
            assert following is None, "a commit has no next result"
            self._arm()

    # Removal of offsets

    def topic_gone(self, topic: str) -> None:
        self.write_queued()
        self.run(self.shard.offsets_of_topic_gone(topic))

    def forget_former_topics(self) -> None:
        self.write_queued()
        self.run(self.shard.offsets_without_topic())

    def expire_offsets(self) -> None:
        self.write_queued()
        self.run(self.shard.expire_offsets(self.now()))

    # Committed offsets

    def committed(self) -> CommittedView:
        """Returns the offsets that no failover takes back; raises COORDINATOR_LOAD_IN_PROGRESS while that is not known
        for all."""
        if self.replica.high_watermark < self._found_end:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                "It is not known yet whether all records of the group are committed. Try again.",
            )
        self._committed.advance(self.replica.high_watermark)
        return self._committed

    def _respond_when_settled(self, result: CoordinatorResult) -> None:
        if self.is_settled or not result.responses:
            _respond(result.responses)
        else:
            self._when_committed(self._end_offset, result)

    def _write(self, result: CoordinatorResult) -> CoordinatorResult | None:
        """Appends and applies the records of a result, and sends its responses once they are committed. Returns the
        result to run next, if there is one."""
        try:
            end_offset = self._append(result, self._clock.wall_ms())
        except KafkaError as error:
            return self._not_written(result, error, self.now())
        is_committed = self.replica.high_watermark >= end_offset
        if not is_committed:
            self._committed.advance(self.replica.high_watermark)
            self._committed.will_change(result.entries, result.commits, end_offset)
        for entry in result.entries:
            self.shard.apply(entry.key, entry.value)
        if result.entries:
            group_events.tell_written(self._events, result)
        for changes in result.commits:
            self.shard.offsets.put(changes)
        if is_committed:
            return self._written(result)
        self._when_committed(end_offset, result)
        return None

    def _append(self, result: CoordinatorResult, now_ms: int) -> int:
        replica = self.replica
        records, count = _records(result)
        base_offset, epoch = replica.log.log_end_offset, replica.role.epoch
        batch, header = batch_of(
            records, count, now_ms, self._codec, base_offset=base_offset, leader_epoch=epoch
        )
        return self.append(batch, header, now_ms)

    def _when_committed(self, end_offset: int, result: CoordinatorResult) -> None:
        def done() -> None:
            del self._uncommitted[waiter]
            self._finish(result)

        def give_up() -> None:
            del self._uncommitted[waiter]
            following = self._refuse(result, ErrorCode.COORDINATOR_NOT_AVAILABLE, self.now())
            if following is not None:
                self.run(following)

        waiter = CommitWaiter(self.replica, end_offset, self._commit_timeout_s, done, give_up)
        self._uncommitted[waiter] = result

    def _finish(self, result: CoordinatorResult) -> None:
        following = self._written(result)
        if following is not None:
            self.run(following)

    def _written(self, result: CoordinatorResult) -> CoordinatorResult | None:
        _respond(result.responses)
        return None if result.on_written is None else self.shard.written(result.on_written, self.now())

    def _not_written(
        self, result: CoordinatorResult, error: KafkaError, now: Moment
    ) -> CoordinatorResult | None:
        return self._refuse(result, coordinator_error(error.code), now)

    def _refuse(self, result: CoordinatorResult, code: ErrorCode, now: Moment) -> CoordinatorResult | None:
        _respond([(token, _refused(response, code)) for token, response in result.responses])
        on_written = result.on_written
        return None if on_written is None else self.shard.write_failed(on_written, code, now)

    # Transactions

    def commit_in_transaction(
        self, result: CoordinatorResult, producer_id: int, epoch: int, guard: VerificationGuard | None
    ) -> None:
        """Writes the offsets of a transaction; responds when the records are committed."""
        self.write_queued()
        now = self.now()
        try:
            batch, header = batch_of(
                *_records(result),
                now.wall_ms,
                self._codec,
                producer_id=producer_id,
                producer_epoch=epoch,
                is_transactional=True,
            )
            self.append(batch, header, now.wall_ms, guard)
        except KafkaError as error:
            self._not_written(result, error, now)
            return
        for changes in result.commits:
            self.shard.offsets.put_pending(producer_id, changes)
        if self.replica.high_watermark >= self._end_offset:
            _respond(result.responses)
        else:
            self._when_committed(self._end_offset, result)

    def end_transaction(
        self, producer_id: int, epoch: int, marker: Marker, transaction_version: int
    ) -> PendingAppend:
        """Appends the marker of a transaction, which commits or drops its offsets."""
        self.write_queued()
        self.replica.check_online()
        appended = self.replica.append_marker(
            producer_id, epoch, marker, transaction_version, self.now().wall_ms
        )
        self._end_offset = appended.last_offset + 1
        if marker.is_commit and self.replica.high_watermark < self._end_offset:
            self._committed.advance(self.replica.high_watermark)
            self._committed.places_will_change(self.shard.offsets.pending_of(producer_id), self._end_offset)
        self.shard.end_transaction(producer_id, marker.is_commit, self.now())
        return PendingAppend(self.replica, self.epoch, self._end_offset)

    # Time

    def _arm(self) -> None:
        """Sets the timer for the next deadline; a timer that fires too early is set again."""
        deadline = self.shard.timers.next_deadline()
        if deadline is None or self.is_stopped:
            return
        if self._timer is not None:
            if self._timer_at <= deadline:
                return
            self._timer.cancel()
        self._timer_at = deadline
        delay = max(deadline - self._clock.monotonic(), 0)
        self._timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self.write_queued()
        for result in self.shard.expire(self.now()):
            group_events.tell_removed(self._events, result)
            self.run(result)
        self._arm()

    def stop(self) -> None:
        """Stops the shard: requests that wait for a commit or a rebalance have to find the new coordinator."""
        super().stop()
        for waiter in self._uncommitted:
            waiter.cancel()
        pending = [each for result in self._uncommitted.values() for each in result.responses]
        self._uncommitted.clear()
        pending += self._queued.responses
        pending += [(join.token, heartbeat_refused(ErrorCode.NOT_COORDINATOR)) for join in self._joining]
        self._queued = CoordinatorResult()
        self._queued_count = 0
        self._joining.clear()
        pending += self.shard.waiting_members()
        _respond([(token, _refused(response, ErrorCode.NOT_COORDINATOR)) for token, response in pending])
        if self._timer is not None:
            self._timer.cancel()


def _records(result: CoordinatorResult) -> tuple[list[bytes], int]:
    """Returns the encoded records of a result, and their number; raises KafkaError if a text is too long for a
    record."""
    try:
        records: list[bytes] = []
        if result.entries:
            records = small_records(
                (encode_key(key), None if value is None else encode_value(value))
                for key, value in result.entries
            )
        count = len(records)
        for changes in result.commits:
            records += offset_commits.records_of(count, *changes)
            count += len(changes.partitions)
    except (EncodeError, StructError) as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"A record of the group cannot be written: {error}."
        ) from error
    return records, count


def _respond(responses: list[tuple[Any, ResponseValue]]) -> None:
    """Completes responses. A token is the pending response that the request's handler returned."""
    for token, response in responses:
        token.respond(response)


def _refused(response: ResponseValue, code: int) -> ResponseValue:
    """Returns a response with the error of a change that could not be written, and nothing of the change."""
    match response:
        case JoinGroupResponse():
            return join_refused(response.member_id, code)
        case SyncGroupResponse():
            return sync_refused(code)
        case ConsumerGroupHeartbeatResponse():
            return heartbeat_refused(code)
    if hasattr(response, "error_code"):
        response.error_code = code
    for topic in getattr(response, "topics", ()):
        for partition in topic.partitions:
            partition.error_code = code
    return response
