"""The membership in a group of the consumer protocol (KIP-848): the coordinator assigns, heartbeats carry
everything.

    joining       epoch 0 with the whole subscription; the response has the member's epoch and, once there is one, an
                  assignment
    stable        a heartbeat at the interval of the coordinator, which names only changes
    reconciling   the assignment differs from the member's partitions: inside a poll it commits and gives up those that
                  it must, adds the new ones, and the next heartbeat names the partitions that it has now
    leaving       epoch -1 (a static member: -2, which keeps its place)

Rules:
1. The member chooses its id, once, at random; it keeps it when it is fenced and joins again.
2. Fenced (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID), or too long without a poll: its partitions are lost, not
   revoked.
3. Topics come as ids. Metadata is requested for an id without a known name, and the partitions with names are
   taken.
4. A heartbeat without a response is repeated in full: nobody knows whether the coordinator received it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition, uuid_text
from strandline.base.waiting import within
from strandline.client.consumer.committed_offsets import CommitIdentity, NotAMember
from strandline.client.consumer.group.callbacks import RebalanceCallbacks
from strandline.client.consumer.group.member import CommitBeforeRevocation, GroupCoordinatorClient
from strandline.client.consumer.subscription import SubscriptionState, SubscriptionType
from strandline.client.errors import KafkaError, error_for
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.partitions import by_topic
from strandline.telemetry.counters import Counters
from strandline.wire.api.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_JOIN_EPOCH: Final = 0
_LEAVE_EPOCH: Final = -1
_STATIC_LEAVE_EPOCH: Final = -2
_FIRST_INTERVAL_SECONDS: Final = 3.0
_FENCED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class ConsumerMembership:
    """The membership in a group of the consumer protocol."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        commit: CommitBeforeRevocation,
        counters: Counters,
    ) -> None:
        config = cluster.config
        self._cluster = cluster
        self._subscription = subscription
        self._commit = commit
        self._counters = counters
        self._coordinator = GroupCoordinatorClient(cluster, config.text("group.id"))
        self._instance_id = config.optional_text("group.instance.id")
        self._assignor = config.optional_text("group.remote.assignor")
        self._member_id = uuid_text(cluster.world.random.uuid())
        self._epoch = _JOIN_EPOCH
        self._last_identity = CommitIdentity()
        self._interval = _FIRST_INTERVAL_SECONDS
        self._target: dict[bytes, tuple[int, ...]] | None = None  # None before the first assignment
        self._acknowledged: ConsumerGroupHeartbeatRequest | None = None  # the last heartbeat with a response
        self._needs_full_heartbeat = True
        self._is_joined = False
        self._is_reconciled = True
        self._are_partitions_lost = False
        self._has_left = False  # because nobody polled; the next poll joins again
        self._fatal: KafkaError | None = None
        self._heartbeat_task: asyncio.Task[None] | None = None
        self._heartbeat_due = asyncio.Event()
        self._changed = asyncio.Event()
        self._last_poll = cluster.now()
        self._leave_count = 0  # a poll that is under way stops when this changes
        self._callbacks = RebalanceCallbacks(subscription, self._coordinator.group_id)
        self.wake: Callable[[], None] = lambda: None

    # State and changes

    @property
    def is_settled(self) -> bool:
        return (
            self._heartbeat_task is not None
            and self._is_joined
            and self._is_reconciled
            and not self._are_partitions_lost
            and not self._has_left
            and not self._callbacks.are_pending
            and self._fatal is None
        )

    @property
    def identity(self) -> CommitIdentity | NotAMember:
        if self._epoch <= 0:
            is_removed = self._has_left or self._are_partitions_lost
            return NotAMember(is_joining=self._heartbeat_task is not None and not is_removed)
        return CommitIdentity(self._epoch, self._member_id, self._instance_id)

    @property
    def last_identity(self) -> CommitIdentity:
        identity = self.identity
        return self._last_identity if isinstance(identity, NotAMember) else identity

    @property
    def member_id(self) -> str:
        return self._member_id

    def subscription_changed(self) -> None:
        self._heartbeat_now()

    def metadata_changed(self) -> None:
        if self._target is not None:
            self._check_reconciled()

    def enforce_rebalance(self, reason: str) -> None:
        """Does nothing: the coordinator decides when to rebalance."""

    # Poll

    async def poll(self, deadline: float) -> None:
        leave_count = self._leave_count
        self._last_poll = self._cluster.now()
        if self._heartbeat_task is None:
            self._heartbeat_task = asyncio.get_running_loop().create_task(self._run_heartbeats())
        if self._has_left:
            self._has_left = False
            self._heartbeat_now()
        while not self.is_settled:
            if self._fatal is not None:
                raise self._fatal
            if self._callbacks.are_pending:
                await self._callbacks.invoke_pending()
                self._callbacks.raise_error()
            elif self._are_partitions_lost:
                self._drop_lost_partitions()
            elif not self._is_reconciled:
                await self._reconcile()
            else:
                self._changed.clear()
                left = deadline - self._cluster.now()
                try:
                    await within(max(0.0, left), self._changed.wait())
                except TimeoutError:
                    return
            if self._leave_count != leave_count:
                return
            self._last_poll = self._cluster.now()

    def _drop_lost_partitions(self) -> None:
        self._are_partitions_lost = False
        lost = list(self._subscription.partitions)
        self._subscription.assign_from_group(())
        if lost:
            self._callbacks.enqueue("on_partitions_lost", lost)

    async def _reconcile(self) -> None:
        target = self._target_partitions()
        owned = list(self._subscription.partitions)
        revoked = [where for where in owned if where not in target]
        for where, state in self._subscription.partitions.items():
            # The last attempt may have been cancelled, and have been about others.
            state.is_pending_revocation = where in revoked
        if revoked:
            await self._commit(self._cluster.now() + 10.0)
            await self._callbacks.invoke("on_partitions_revoked", revoked)
            if self._are_partitions_lost or self._heartbeat_task is None:
                return  # Meanwhile the member was removed, or has left.
        # The assignment may have changed while the listener ran.
        retained = [where for where in owned if where not in revoked]
        self._subscription.assign_from_group(
            [*retained, *(where for where in target if where not in retained)]
        )
        added = [where for where in target if where not in owned]
        self._counters.add("rebalance-total")
        self._check_reconciled()
        self._heartbeat_now()
        if added:
            self._callbacks.enqueue("on_partitions_assigned", added)

    def _target_partitions(self) -> list[TopicPartition]:
        """Returns the assignment by names; requests metadata for topics whose names are not known."""
        partitions: list[TopicPartition] = []
        for topic_id, indexes in (self._target or {}).items():
            name = self._cluster.metadata.topic_name(topic_id)
            if name is None:
                # A pattern that the coordinator matches may have topics of which this client has no metadata.
                self._cluster.wants_all_topics = True
                self._cluster.request_update()
            else:
                partitions += [TopicPartition(name, index) for index in indexes]
        return sorted(partitions)

    def _check_reconciled(self) -> None:
        reconciled = self._target_partitions() == sorted(self._subscription.partitions)
        if reconciled != self._is_reconciled:
            self._is_reconciled = reconciled
            self._changed.set()
            self.wake()

    # Heartbeats

    def _heartbeat_now(self) -> None:
        self._heartbeat_due.set()

    async def _run_heartbeats(self) -> None:
        poll_max = self._cluster.config.seconds("max.poll.interval.ms")
        pause = self._cluster.backoff()
        while True:
            self._heartbeat_due.clear()
            wait_seconds: float | None = None
            if self._has_left:
                pass  # The next poll joins again.
            elif self._cluster.now() - self._last_poll > poll_max:
                await self._leave_for_not_polling()
            elif self._subscription.is_in_group:
                try:
                    await self._send_heartbeat()
                    pause.succeeded()
                except KafkaError as error:
                    self._coordinator.log_heartbeat_failed(error)
                    self._needs_full_heartbeat = True
                    if not error.retriable:
                        self._fail(error)
                    wait_seconds = pause.failed()
                except Exception as error:
                    self._coordinator.log_heartbeat_failed(error)
                    self._fail(KafkaError(None, f"a heartbeat failed with {error!r}"))
                    wait_seconds = pause.failed()
            with suppress(TimeoutError):
                # The interval is the last response's, which may just have come.
                await within(wait_seconds or self._interval, self._heartbeat_due.wait())

    async def _send_heartbeat(self) -> None:
        request = self._request()
        session_seconds = self._cluster.config.seconds("request.timeout.ms")
        response = await self._coordinator.call(
            self._without_unchanged(request),
            ConsumerGroupHeartbeatResponse,
            self._cluster.now() + session_seconds,
            seconds=session_seconds,
        )
        self._counters.add("heartbeat-total")
        code = response.error_code
        if code == ErrorCode.NONE:
            self._handle_heartbeat(request, response)
        elif code in _FENCED:
            self._forget_membership()
            self._are_partitions_lost = bool(self._subscription.partitions)
            self._changed.set()
            self.wake()
            self._heartbeat_now()
        elif self._coordinator.forget_if_moved(code):
            raise error_for(code, "the coordinator has moved")
        else:
            raise error_for(code, response.error_message or f"group {self._coordinator.group_id}")

    def _handle_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse
    ) -> None:
        self._acknowledged = request
        self._needs_full_heartbeat = False
        self._member_id = response.member_id or self._member_id
        self._epoch = response.member_epoch
        self._interval = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            self._target = {
                each.topic_id: tuple(each.partitions) for each in response.assignment.topic_partitions
            }
        if not self._is_joined and self._target is not None:
            self._is_joined = True
            self._changed.set()
            self.wake()
        self._check_reconciled()

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        """Returns a heartbeat with every field that the coordinator may need."""
        subscription = self._subscription
        is_pattern = subscription.type is SubscriptionType.SERVER_PATTERN
        return ConsumerGroupHeartbeatRequest(
            group_id=self._coordinator.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self._instance_id,
            rack_id=self._cluster.config.text("client.rack") or None,
            rebalance_timeout_ms=self._cluster.config.int("max.poll.interval.ms"),
            subscribed_topic_names=() if is_pattern else subscription.topics,
            subscribed_topic_regex=subscription.pattern if is_pattern else None,
            server_assignor=self._assignor,
            topic_partitions=self._owned(subscription.partitions) if self._epoch != _JOIN_EPOCH else (),
        )

    def _owned(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
        topics = self._cluster.metadata.topics
        return tuple(
            TopicPartitions(topic_id=topics[name].topic_id, partitions=indexes)
            for name, indexes in by_topic(sorted(partitions)).items()
            if name in topics
        )

    def _without_unchanged(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatRequest:
        """Returns the heartbeat without fields that the coordinator has already."""
        acknowledged = self._acknowledged
        if acknowledged is None or self._needs_full_heartbeat or self._epoch == _JOIN_EPOCH:
            return request
        has_new_names = request.subscribed_topic_names != acknowledged.subscribed_topic_names
        has_new_pattern = request.subscribed_topic_regex != acknowledged.subscribed_topic_regex
        has_new_partitions = request.topic_partitions != acknowledged.topic_partitions
        return ConsumerGroupHeartbeatRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            instance_id=request.instance_id,
            subscribed_topic_names=request.subscribed_topic_names if has_new_names else None,
            subscribed_topic_regex=(request.subscribed_topic_regex or "") if has_new_pattern else None,
            topic_partitions=request.topic_partitions if has_new_partitions else None,
        )

    def _fail(self, error: KafkaError) -> None:
        self._fatal = error
        self._changed.set()
        self.wake()

    # Leaving

    async def _leave_for_not_polling(self) -> None:
        self._counters.add("poll-interval-exceeded-total")
        self._coordinator.log_not_polling()
        with suppress(KafkaError):
            await self._send_leave(5.0)
        self._are_partitions_lost = bool(self._subscription.partitions)
        self._has_left = True
        self.wake()

    async def leave(self, deadline: float, reason: str) -> None:
        self._leave_count += 1
        if self._heartbeat_task is not None:
            self._heartbeat_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._heartbeat_task
            self._heartbeat_task = None
        is_lost = self._are_partitions_lost or self._epoch <= 0
        try:
            await self._callbacks.invoke_on_leave(self._commit, deadline, is_lost=is_lost)
        finally:
            self._are_partitions_lost = False
            self._subscription.assign_from_group(())
            self._changed.set()  # for a poll that waits for an assignment
            with suppress(KafkaError):
                await self._send_leave(max(0.1, deadline - self._cluster.now()))
        self._callbacks.raise_error()

    def _forget_membership(self) -> None:
        self._last_identity = self.last_identity
        self._epoch = _JOIN_EPOCH
        self._target = None
        self._needs_full_heartbeat = True
        self._is_joined = False
        self._is_reconciled = True

    async def _send_leave(self, seconds: float) -> None:
        was_member = self._epoch > 0
        self._forget_membership()
        if not was_member:
            return
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._coordinator.group_id,
            member_id=self._member_id,
            member_epoch=_LEAVE_EPOCH if self._instance_id is None else _STATIC_LEAVE_EPOCH,
            instance_id=self._instance_id,
        )
        await self._coordinator.call(
            request, ConsumerGroupHeartbeatResponse, self._cluster.now() + seconds, seconds=seconds
        )
