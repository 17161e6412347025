"""The commits of a consumer: automatic ones at an interval, one before partitions go, and those of the application.

Rules:
1. Automatic commits start inside a poll and cover the records of earlier polls, so nothing unread is committed. One
   is in flight at a time; a failed one is repeated by the next interval.
2. Before partitions are given up, and when the consumer is closed, the last positions are committed and waited for.
3. Commits are carried out one after the other, in the order of the calls: an older one, which may be tried again
   for long, never overwrites a newer one.
4. A consumer that has subscribed and is not a member of the group at the moment commits nothing automatically.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from strandline.base.ids import TopicPartition
from strandline.base.waiting import all_ended, within
from strandline.client.consumer.committed_offsets import CommitIdentity, CommittedOffsets, NotAMember, Offsets
from strandline.client.consumer.interceptors import ConsumerInterceptors
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import ConfigError, KafkaError, KafkaTimeoutError
from strandline.client.net.cluster import ClusterClient
from strandline.telemetry.counters import Counters


class Commits:
    """Carries out the commits of one consumer in order."""

    def __init__(
        self, cluster: ClusterClient, identity: Callable[[], CommitIdentity | NotAMember], counters: Counters
    ) -> None:
        config = cluster.config
        self._cluster = cluster
        self._identity = identity
        self._counters = counters
        self._interceptors = ConsumerInterceptors(config.objects("interceptor.classes"), counters)
        group_id = config.optional_text("group.id") or None
        self.committed = None if group_id is None else CommittedOffsets(cluster, group_id, identity)
        self._is_auto_commit = group_id is not None and config.flag("enable.auto.commit")
        self._interval = config.seconds("auto.commit.interval.ms")
        self._due_at = cluster.now() + self._interval
        self._auto_commit: asyncio.Task[None] | None = None
        self._in_flight: dict[asyncio.Task[None], None] = {}  # asynchronous commits
        self._lock = asyncio.Lock()  # given in the order of the calls
        self._auto_committed: dict[TopicPartition, OffsetAndMetadata] = {}  # by automatic commits

    async def commit(self, offsets: Offsets, deadline: float) -> None:
        """Commits after the commits before it, and waits until that is done."""
        if self.committed is None:
            raise ConfigError("committing offsets needs a group.id", key="group.id")
        # Earlier asynchronous commits are tasks that may not have run yet: now they wait for the lock before this one.
        await asyncio.sleep(0)
        try:
            await within(max(0.0, deadline - self._cluster.now()), self._lock.acquire())
        except TimeoutError:
            self._counters.add("commit-failed-total")
            raise KafkaTimeoutError(None, "earlier commits got no response in time") from None
        try:
            await self._commit(self.committed, offsets, deadline)
        finally:
            self._lock.release()

    async def _commit(self, committed: CommittedOffsets, offsets: Offsets, deadline: float) -> None:
        """Commits; the caller holds the lock."""
        try:
            await committed.commit(offsets, deadline)
        except KafkaError:
            self._counters.add("commit-failed-total")
            raise
        self._counters.add("commit-total")
        self._interceptors.on_commit(offsets)

    async def fetch(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the group's committed offsets; partitions without one are left out."""
        if self.committed is None:
            raise ConfigError("committed offsets belong to a group: set group.id", key="group.id")
        return await self.committed.fetch(partitions, deadline)

    def commit_async(self, offsets: Offsets) -> asyncio.Task[None]:
        """Starts a commit, which is carried out after those before it; its error is only in the task."""
        task = asyncio.get_running_loop().create_task(self._commit_locked(dict(offsets)))
        self._in_flight[task] = None
        task.add_done_callback(self._completed)
        return task

    def _completed(self, task: asyncio.Task[None]) -> None:
        del self._in_flight[task]
        if not task.cancelled():
            task.exception()  # so that nothing is logged if nobody awaits it

    async def _commit_locked(self, offsets: Offsets) -> None:
        if self.committed is None:
            raise ConfigError("committing offsets needs a group.id", key="group.id")
        async with self._lock:
            seconds = self._cluster.config.seconds("default.api.timeout.ms")
            await self._commit(self.committed, offsets, self._cluster.now() + seconds)

    @property
    def seconds_to_next(self) -> float:
        """The seconds until `commit_if_due` has something to do."""
        if not self._is_auto_commit or (self._auto_commit is not None and not self._auto_commit.done()):
            return float("inf")
        return self._due_at - self._cluster.now()

    def commit_if_due(self, consumed: Callable[[], Offsets]) -> None:
        """Starts an automatic commit if one is due. Each poll calls this before it returns records, and while it
        waits."""
        if not self._is_auto_commit or self._cluster.now() < self._due_at:
            return
        if self._auto_commit is not None and not self._auto_commit.done():
            return
        self._due_at = self._cluster.now() + self._interval
        if isinstance(self._identity(), NotAMember):
            return
        offsets = self._uncommitted(consumed())
        if offsets:
            self._auto_commit = self.commit_async(offsets)
            self._auto_commit.add_done_callback(lambda done: self._auto_commit_done(done, offsets))

    def _uncommitted(self, offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets without those that the last automatic commit has committed."""
        return {
            where: offset for where, offset in offsets.items() if self._auto_committed.get(where) != offset
        }

    def _auto_commit_done(self, done: asyncio.Task[None], offsets: Offsets) -> None:
        if not done.cancelled() and done.exception() is None:
            self._auto_committed.update(offsets)

    async def commit_before_revocation(self, offsets: Offsets, deadline: float) -> None:
        """Commits and waits, if commits are automatic. After an error the next owner of the partitions starts from
        older offsets."""
        await self._wait_in_flight(deadline)
        self._auto_committed.clear()
        if self._is_auto_commit and offsets:
            with suppress(KafkaError):
                await self.commit(offsets, deadline)

    async def close(self, deadline: float) -> None:
        """Waits for the commits in flight, and cancels them at the deadline."""
        await self._wait_in_flight(deadline)
        for task in list(self._in_flight):
            task.cancel()

    async def _wait_in_flight(self, deadline: float) -> None:
        """Waits until the asynchronous commits have ended, whatever their outcome, or the deadline is over."""
        with suppress(TimeoutError):
            await within(max(0.0, deadline - self._cluster.now()), all_ended(*self._in_flight))
