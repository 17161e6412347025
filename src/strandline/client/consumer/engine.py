"""The engine of a consumer: all that `consumer` does with the cluster.

One poll, in order:

    commit     the records that earlier polls gave, if commits are automatic and one is due
    group      join, or apply the assignment of the group (`group`); listeners are called here
    positions  find where to read in new partitions (`positions`)
    take       records from the buffer
    dispatch   request more from the brokers (`fetcher`)
    wait       for a wake-up, if there was nothing to take

Work that cannot be finished before the poll's deadline goes on in the background, and the next poll takes it up
again. A poll that waits for long goes through all this again after each wake-up, and often enough for periodic
work: its member must be seen to poll, and automatic commits are due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from strandline.base.topics import INTERNAL_TOPICS
from strandline.base.waiting import within
from strandline.client.config.config import ClientConfig
from strandline.client.consumer.background_task import BackgroundTask
from strandline.client.consumer.commits import Commits
from strandline.client.consumer.committed_offsets import CommitIdentity, NotAMember, Offsets
from strandline.client.consumer.deserializing import Deserializers, lookup_error
from strandline.client.consumer.fetch_buffer import FetchBuffer
from strandline.client.consumer.fetcher import Fetcher
from strandline.client.consumer.group.assignors import Assignor
from strandline.client.consumer.group.member import GroupMembership
from strandline.client.consumer.log_offsets import LogOffsets
from strandline.client.consumer.positions import Positions
from strandline.client.consumer.subscription import SubscriptionState, SubscriptionType
from strandline.client.errors import ClosedError, IllegalStateError
from strandline.client.net.cluster import ClusterClient
from strandline.client.world import ClientWorld
from strandline.serde.contract import LookupNeeded
from strandline.telemetry.counters import Counters

T = TypeVar("T")

# However short the intervals of the settings are, a waiting poll does not look more often.
_TURN_SECONDS_MIN: Final = 0.02


class ConsumerEngine:
    """The parts of a started consumer, and the order in which a poll drives them."""

    def __init__(
        self,
        config: ClientConfig,
        world: ClientWorld,
        subscription: SubscriptionState,
        assignors: Sequence[Assignor],
        deserializers: Deserializers,
        consumed: Callable[[], Offsets],
        counters: Counters,
    ) -> None:
        """`consumed` returns the offsets before which the application has been given every record."""
        self.config = config
        self.subscription = subscription
        self.counters = counters
        self._positions = consumed
        self.cluster = ClusterClient(
            config,
            world,
            allow_auto_create=config.flag("allow.auto.create.topics"),
            start_seconds=config.seconds("default.api.timeout.ms"),
        )
        self._wakeup = asyncio.Event()
        self.buffer = FetchBuffer(subscription, deserializers)
        self._fetcher = Fetcher(self.cluster, subscription, self.buffer, counters, self._wakeup.set)
        self.log = LogOffsets(self.cluster)
        self.commits = Commits(self.cluster, self._identity, counters)
        self.positions = Positions(self.cluster, subscription, self.log, self.commits.committed, counters)
        self.positions.wake = self._wakeup.set
        self._position_search = BackgroundTask()
        self._look_up = BackgroundTask()
        deserializers.use_ports(world.web, world.clock)
        self.membership = self._make_membership(assignors)
        # The member leaves the group if no poll came for max.poll.interval.ms; it checks at each heartbeat.
        self._member_seconds = min(
            config.seconds("heartbeat.interval.ms"), config.seconds("max.poll.interval.ms") / 2
        )
        self._is_polling = False
        self._is_closed = False
        self._is_dispatch_due = False
        self.cluster.on_change(self._metadata_changed)

    def _make_membership(self, assignors: Sequence[Assignor]) -> GroupMembership | None:
        if not self.config.value("group.id"):
            return None
        membership: GroupMembership
        # Loaded only for members of a group: a consumer without one starts sooner.
        if self.config.text("group.protocol").lower() == "consumer":
            from strandline.client.consumer.group.consumer import ConsumerMembership

            membership = ConsumerMembership(self.cluster, self.subscription, self._last_commit, self.counters)
        else:
            from strandline.client.consumer.group.classic import ClassicMembership

            membership = ClassicMembership(
                self.cluster, self.subscription, assignors, self._last_commit, self.counters
            )
        membership.wake = self._wakeup.set
        return membership

    def _identity(self) -> CommitIdentity | NotAMember:
        if self.membership is None or not self.subscription.is_in_group:
            return CommitIdentity()
        return self.membership.identity

    @property
    def last_identity(self) -> CommitIdentity:
        """The identity under which transactions name this consumer."""
        if self.membership is None or not self.subscription.is_in_group:
            return CommitIdentity()
        return self.membership.last_identity

    async def start(self) -> None:
        try:
            await self.cluster.start()
        except BaseException:
            await self.cluster.close()
            self.cluster.world.close()
            raise
        self.subscription_changed()

    async def close(self, deadline: float) -> None:
        self._is_closed = True
        self._wakeup.set()
        await self._position_search.cancel()
        await self._look_up.cancel()
        try:
            if self.membership is not None and self.subscription.is_in_group:
                await self.membership.leave(deadline, "the consumer is being closed")
            else:
                await self._last_commit(deadline)
        finally:
            await self.commits.close(deadline)
            await self._fetcher.close()
            await self.cluster.close()
            self.cluster.world.close()

    async def _last_commit(self, deadline: float) -> None:
        """Commits before partitions go. An error is only counted, for others may own them already and nobody can do
        more."""
        await self.commits.commit_before_revocation(self._consumed(), deadline)

    def _consumed(self) -> Offsets:
        """Returns the positions to commit: none of a deleted topic, for another one of its name may exist by then."""
        topics = self.cluster.metadata.topics
        return {where: offset for where, offset in self._positions().items() if where.topic in topics}

    # Changes

    def subscription_changed(self) -> None:
        """Has the changed subscription take effect: other topics, another assignment."""
        subscription = self.subscription
        self.cluster.wants_all_topics = subscription.type is SubscriptionType.PATTERN
        if subscription.type is SubscriptionType.PARTITIONS:
            self.cluster.set_topics(sorted({where.topic for where in subscription.partitions}))
        elif subscription.type is SubscriptionType.PATTERN:
            self._match_pattern()
            self.cluster.request_update()
        else:
            self.cluster.set_topics(list(subscription.topics))
        if self.membership is not None and subscription.is_in_group:
            self.membership.subscription_changed()
        self._wakeup.set()

    def wake(self) -> None:
        """Has a change of positions or pauses take effect: there may be something to fetch, or to look up.

        Requests are sent in the next turn of the loop: after many seeks, one request has all of these partitions.
        """
        if not self._is_dispatch_due:
            self._is_dispatch_due = True
            asyncio.get_running_loop().call_soon(self._dispatch)
        self._wakeup.set()

    def _dispatch(self) -> None:
        self._is_dispatch_due = False
        self._fetcher.dispatch()

    def _metadata_changed(self) -> None:
        if self._is_closed:
            return
        if self.subscription.type is SubscriptionType.PATTERN:
            self._match_pattern()
        self._fetcher.reset_recreated()  # before a rebalance commits positions of the former topic
        if self.membership is not None and self.subscription.is_in_group:
            self.membership.metadata_changed()
        self._fetcher.dispatch()

    def _match_pattern(self) -> None:
        without_internal = self.config.flag("exclude.internal.topics")
        names = [
            name
            for name, topic in self.cluster.metadata.topics.items()
            if not (without_internal and (topic.is_internal or name in INTERNAL_TOPICS))
        ]
        if self.subscription.match_pattern(names) and self.membership is not None:
            self.membership.subscription_changed()
            self._wakeup.set()

    # Poll

    async def poll(self, timeout: float | None, take: Callable[[], list[T]]) -> list[T]:
        """Returns the records that `take` returns, as soon as it returns some, or none after `timeout` seconds. With
        None it waits without a limit."""
        if self._is_polling:
            raise IllegalStateError(None, "another task is polling this consumer")
        if not self.subscription.is_active:
            raise IllegalStateError(None, "nothing to read: subscribe to topics or assign partitions first")
        self._is_polling = True
        try:
            # Other tasks must run too, heartbeats among them, however fast the application polls. This comes before
            # records are taken: a poll that is cancelled after that loses them.
            await asyncio.sleep(0)
            deadline = float("inf") if timeout is None else self.cluster.now() + timeout
            while True:
                self._check_open()
                self._wakeup.clear()  # before anything is looked at: all that comes from now on wakes the poll
                self.commits.commit_if_due(self._consumed)
                wait_end = min(deadline, self.cluster.now() + self._wait_seconds_max())
                wait_end = min(wait_end, await self._poll_membership(wait_end))
                if self._fetcher.errors:
                    raise self._fetcher.errors.pop(0)
                records = self._taken(take)
                self._fetcher.dispatch()
                now = self.cluster.now()
                if records or now >= deadline or not self.subscription.is_active:
                    return records
                with suppress(TimeoutError):
                    await within(max(0.0, wait_end - now), self._wakeup.wait())
        finally:
            self._is_polling = False

    def _taken(self, take: Callable[[], list[T]]) -> list[T]:
        """Returns the records that are there; none while a look-up for a deserializer is under way. Raises the
        look-up's error."""
        if self._look_up.is_running:
            return []  # Its end wakes the poll.
        if self._look_up.is_started:
            try:
                self._look_up.result()
            except Exception as error:
                raise lookup_error(error) from error
        try:
            return take()
        except LookupNeeded as needed:
            self._look_up.start(needed.look_up, self._wakeup.set)
            return []

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError(None, "the consumer was closed")

    def _wait_seconds_max(self) -> float:
        """Returns the seconds that a poll may wait before it looks again without a wake-up."""
        seconds = self.commits.seconds_to_next
        if self.membership is not None and self.subscription.is_in_group:
            seconds = min(seconds, self._member_seconds)
        return max(_TURN_SECONDS_MIN, seconds)

    async def _poll_membership(self, deadline: float) -> float:
        """Polls group and positions, which costs nothing while both are settled; returns when positions are to be
        looked up next."""
        if self.membership is not None and self.subscription.is_in_group:
            # Called even if settled: the member counts the time between polls.
            await self.membership.poll(deadline)
        return self._search_positions()

    def _search_positions(self) -> float:
        """Raises the error of the last search, and begins another if one is due; returns the time at which the next one
        is."""
        self._check_open()
        if self._position_search.is_running:
            return float("inf")  # Its end wakes the poll.
        if self._position_search.is_started:
            self._position_search.result()
        due_at = self.positions.due_at
        if due_at > self.cluster.now():
            return due_at
        self._position_search.start(self._find_positions, self._wakeup.set)
        return float("inf")

    async def await_positions(self, deadline: float) -> None:
        """Waits until positions have been looked up, for as long as the deadline allows."""
        due_at = self._search_positions()
        now = self.cluster.now()
        if self._position_search.is_running:
            await self._position_search.wait(deadline - now)
        else:
            await asyncio.sleep(max(0.0, min(deadline, due_at) - now))

    async def _find_positions(self) -> None:
        seconds = self.config.seconds("default.api.timeout.ms")
        await self.positions.find_missing(self.cluster.now() + seconds)
