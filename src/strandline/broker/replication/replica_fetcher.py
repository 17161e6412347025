"""Fetches the partitions that this node follows, on one connection for each leader.

1. A partition is fetched from the leader in the image, in the leader epoch of the image, until that changes.
2. Records are appended unchanged, at their offsets; the next request, from the new end, acknowledges them.
3. A follower whose log diverges truncates it at the point that the leader names, by epochs (KIP-101, 279, 595), at any
   distance. That point is below the high watermark only if the leader was elected uncleanly or has lost records, and
   that is logged as a warning.
4. A failure of one partition does not hold up the others: the partition is left out for a moment and tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.node_context import NodeContext
from strandline.broker.nodes import NodeClient, inter_broker_endpoint
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.broker.replication.replication_quota import ReplicationQuota
from strandline.broker.replication.suspected_brokers import SuspectedBrokers
from strandline.partition.follower import PartitionFollower, truncation_point
from strandline.ports.network import Network
from strandline.storage.segment import DamagedSegment
from strandline.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from strandline.wire.record_batch import CorruptBatch

FETCH_VERSION: Final = 18
_SLACK_S: Final = 5.0
_LATEST, _EARLIEST = -1, -2
# The time for which a partition is left out that its leader refuses, mostly because it does not know of its election
# yet.
_HOLD_S: Final = 0.02
_THROTTLED_S: Final = 0.2
# The same for a partition whose records could not be written, for example because of a full disk.
_TROUBLE_S: Final = 0.5


class FetchState:
    """A partition that is fetched, with the values of its last request."""

    __slots__ = ("held_until", "leader_high_watermark", "replica", "sent", "trouble")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.sent: tuple[int, int, int, int] | None = None  # end, epoch, high watermark, start
        self.held_until = 0.0
        self.trouble = ""  # the logged reason why it could not be written
        self.leader_high_watermark = -1  # from the latest response


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherParts:
    """The parts that the fetchers of all leaders share."""

    node: NodeContext
    replicas: Replicas
    flusher: LogFlusher
    quota: ReplicationQuota
    corrupt_replicas: CorruptReplicas
    suspected_brokers: SuspectedBrokers
    broker_epoch: Callable[[], int]
    network: Network  # with sockets for fetches


class LeaderFetcher:
    """Fetches from one broker, on one connection."""

    def __init__(self, parts: FetcherParts, leader_id: int, number: int) -> None:
        self._parts = parts
        self._node = parts.node
        self._leader_id = leader_id
        self._number = number  # among several fetchers of the same leader
        self.followed: dict[TopicPartition, FetchState] = {}
        self._forgotten: list[tuple[bytes, int]] = []
        self._unflushed: list[FetchState] = []  # in which flush.messages asks for a sync
        self._session_id = 0
        self._session_epoch = 0
        self._client: NodeClient | None = None
        self._more = asyncio.Event()
        self._is_fetching = False
        self._task: asyncio.Task[Any] | None = None

    def follow(self, replica: Replica) -> None:
        self.followed[replica.partition] = FetchState(replica)
        self._fetch_now()
        if self._task is None:
            self._task = self._node.tasks.start(self._run())

    def unfollow(self, partition: TopicPartition) -> None:
        followed = self.followed.pop(partition, None)
        if followed is not None:
            self._forget(followed)

    def _forget(self, followed: FetchState) -> None:
        """Removes the partition from the session, with the next request."""
        if followed.sent is not None:
            followed.sent = None
            self._forgotten.append((followed.replica.topic_id, followed.replica.partition.partition))

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _fetch_now(self) -> None:
        """Sends a request now, for a partition that is not in the request which waits on the leader."""
        self._more.set()
        if self._is_fetching and self._client is not None:
            self._client.nudge()

    # The loop

    async def _run(self) -> None:
        backoff_s = self._node.config.int("replica.fetch.backoff.ms") / 1000
        while True:
            if not self.followed:
                self._more.clear()
                await self._more.wait()
            try:
                await self._fetch_once()
            except OSError:
                self._reset_session()
                await asyncio.sleep(min(backoff_s, 0.05))
            except KafkaError as error:
                self._node.events.warn("replica fetch", source=self._leader_id, error=error)
                self._reset_session()
                await asyncio.sleep(backoff_s)

    def _response_timeout_s(self, wait_ms: int) -> float:
        """Returns the timeout of a response that the leader may hold back for `wait_ms`."""
        return min(self._node.config.int("replica.socket.timeout.ms") / 1000, wait_ms / 1000 + _SLACK_S)

    def _reset_session(self) -> None:
        self._session_id = self._session_epoch = 0
        self._forgotten.clear()
        for followed in self.followed.values():
            followed.sent = None

    async def _fetch_once(self) -> None:
        config = self._node.config
        wait_ms = config.int("replica.fetch.wait.max.ms")
        client = self._connect()  # before the request is made: another connection has another session
        request = self._request(wait_ms)
        if not request.topics and not request.forgotten_topics_data and not self._has_sent():
            self._more.clear()
            await self._more.wait()  # every partition is held up; an empty request has no long poll
            return
        self._is_fetching = True
        try:
            response = await client.call(request, FETCH_VERSION, self._response_timeout_s(wait_ms))
        finally:
            self._is_fetching = False
        if response.error_code != ErrorCode.NONE:
            self._reset_session()
            return
        self._session_id = response.session_id
        self._session_epoch = self._session_epoch + 1 if self._session_id else 0
        for topic in response.responses:
            name = self._node.topic_name(topic.topic_id)
            for data in topic.partitions:
                followed = self.followed.get(TopicPartition(name, data.partition_index))
                if followed is not None:
                    self._take(followed, data)
        await self._flush_taken()
        if not self._session_id:
            # The leader has no room for a session: the next request names all partitions again.
            for followed in self.followed.values():
                followed.sent = None

    async def _flush_taken(self) -> None:
        """Syncs the records that were taken, if flush.messages asks for it: the next request acknowledges them."""
        unflushed, self._unflushed = self._unflushed, []
        for followed in unflushed:
            try:
                await self._parts.flusher.flush(followed.replica)
            except KafkaError as error:
                self._failed(followed, error)

    def _has_sent(self) -> bool:
        return any(followed.sent is not None for followed in self.followed.values())

    def _connect(self) -> NodeClient:
        listener = self._node.config.inter_broker_listener_name
        endpoint = inter_broker_endpoint(self._node.image, self._leader_id, listener)
        client = self._client
        if client is None or (client.host, client.port) != (endpoint.host, endpoint.port):
            if client is not None:
                client.close()
            self._reset_session()
            client_id = f"replica-{self._node.node_id}-{self._number}"
            client = self._client = NodeClient(self._parts.network, client_id, endpoint.host, endpoint.port)
            client.on_lost = lambda: self._parts.suspected_brokers.suspect(self._leader_id)
        return client

    def _request(self, wait_ms: int) -> FetchRequest:
        config = self._node.config
        size_max = config.int("replica.fetch.max.bytes")
        now = self._node.clock.monotonic()
        by_topic: dict[bytes, list[FetchPartition]] = {}
        for followed in self.followed.values():
            replica = followed.replica
            if followed.held_until > now or replica.has_unsaved_cut or replica.is_switching:
                continue
            # Most topics are not throttled, so this is checked first.
            if replica.config.follower_replication_throttled_replicas and self._is_throttled(followed):
                continue
            log, role = replica.log, replica.role
            state = (log.log_end_offset, role.epoch, role.high_watermark, log.log_start_offset)
            if followed.sent == state:
                continue
            followed.sent = state
            by_topic.setdefault(replica.topic_id, []).append(
                FetchPartition(
                    partition=replica.partition.partition,
                    current_leader_epoch=role.epoch,
                    fetch_offset=log.log_end_offset,
                    last_fetched_epoch=log.epochs.latest_epoch if log.log_end_offset > 0 else -1,
                    log_start_offset=log.log_start_offset,
                    partition_max_bytes=size_max,
                    high_watermark=role.high_watermark,
                )
            )
        forgotten: dict[bytes, list[int]] = {}
        for topic_id, index in self._forgotten:
            # A partition that a request both names and forgets is removed.
            if all(index != named.partition for named in by_topic.get(topic_id, ())):
                forgotten.setdefault(topic_id, []).append(index)
        self._forgotten.clear()
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._node.node_id, replica_epoch=self._parts.broker_epoch()
            ),
            max_wait_ms=wait_ms,
            min_bytes=config.int("replica.fetch.min.bytes"),
            max_bytes=config.int("replica.fetch.response.max.bytes"),
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=tuple(FetchTopic(topic_id=t, partitions=tuple(p)) for t, p in by_topic.items()),
            forgotten_topics_data=tuple(
                ForgottenTopic(topic_id=t, partitions=tuple(p)) for t, p in forgotten.items()
            ),
        )

    def _is_throttled(self, followed: FetchState) -> bool:
        """Returns True if a replica that catches up has to wait, because replication is throttled."""
        replica, quota = followed.replica, self._parts.quota
        if not quota.lists(replica, self._node.node_id) or not quota.is_exceeded():
            return False
        topic = self._node.image.topics.get(replica.partition.topic)
        state = None if topic is None else topic.partitions.get(replica.partition.partition)
        if state is not None and self._node.node_id in state.in_sync:
            return False
        self._hold(followed, _THROTTLED_S)
        return True

    # What came

    def _take(self, followed: FetchState, data: PartitionData) -> None:
        replica = followed.replica
        if not isinstance(replica.role, PartitionFollower) or replica.role.leader_id != self._leader_id:
            return
        if replica.is_switching:
            self._hold(followed)  # nothing is appended while its log is switched to its new directory
            return
        if followed.sent is None:
            return  # a response to a request from before it was held up or followed again
        try:
            if data.error_code != ErrorCode.NONE:
                self._refused(followed, data)
            elif data.diverging_epoch is not None:
                self._go_back(followed, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            else:
                if data.records:
                    if self._parts.quota.lists(replica, self._node.node_id):
                        self._parts.quota.note(len(data.records))
                    replica.append_fetched(memoryview(data.records), self._node.clock.wall_ms())
                    replica.metrics.replication_bytes_in += len(data.records)
                    if replica.log.unflushed_count >= replica.config.flush_messages:
                        self._unflushed.append(followed)
                    if replica.has_unsaved_cut:
                        self._save_soon(followed)
                replica.leader_high_watermark(data.high_watermark)
                followed.leader_high_watermark = data.high_watermark
                if data.log_start_offset > replica.log.log_start_offset:
                    replica.log.advance_start(min(data.log_start_offset, replica.log.log_end_offset))
                followed.trouble = ""
        except (KafkaError, OSError, CorruptBatch) as error:
            self._failed(followed, error)

    def _refused(self, followed: FetchState, data: PartitionData) -> None:
        replica = followed.replica
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._node.tasks.start(self._start_over(followed))
            self._hold(followed)
            return
        # The leader or this node does not know the other's epoch yet: the image will bring it.
        self._hold(followed)
        if data.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
            replica.wake_all()

    def _failed(self, followed: FetchState, error: KafkaError | OSError | CorruptBatch) -> None:
        """Limits a failure to its partition (rule 4), and logs it once while it lasts."""
        replica = followed.replica
        if isinstance(error, OSError):
            error = self._parts.replicas.disk_error(replica.directory, error)
        elif isinstance(error, DamagedSegment):
            error = self._parts.corrupt_replicas.report(replica, error)
        if followed.trouble != str(error):
            followed.trouble = str(error)
            self._node.events.warn("replication held up", partition=replica.partition, why=error)
        self._hold(followed, _TROUBLE_S)

    def _hold(self, followed: FetchState, seconds: float = _HOLD_S) -> None:
        self._forget(followed)
        followed.held_until = self._node.clock.monotonic() + seconds
        asyncio.get_running_loop().call_later(seconds * 1.1, self._fetch_now)

    def _go_back(self, followed: FetchState, epoch: int, end_offset: int) -> None:
        replica = followed.replica
        log = replica.log
        target = truncation_point(log.epochs.entries, log.log_end_offset, epoch, end_offset)
        events = self._node.events
        say = events.warn if target < replica.high_watermark else events.info
        say(
            "truncated",
            partition=replica.partition,
            end=log.log_end_offset,
            to=target,
            epoch=epoch,
            high_watermark=replica.high_watermark,
        )
        cuts = log.cuts
        try:
            log.truncate_to(target)
        finally:
            self._was_cut(followed, cuts)

    async def _start_over(self, followed: FetchState) -> None:
        """Continues where the leader does not have the next offset. If the leader's log ends before it (an unclean
        election), the log is truncated; if the leader's log begins after it, the log begins there too."""
        replica = followed.replica
        refused = (replica.log.cuts, replica.log.log_end_offset)
        try:
            end = await self._leader_offset(replica, _LATEST)
            start = await self._leader_offset(replica, _EARLIEST)
        except OSError:
            return
        if end is None or start is None or self.followed.get(replica.partition) is not followed:
            return  # the partition was deleted meanwhile, or has another leader
        if (replica.log.cuts, replica.log.log_end_offset) != refused:
            return  # it was fetched meanwhile: newer records must not be truncated by an older response
        try:
            self._begin_at(followed, start, end)
        except (KafkaError, OSError, CorruptBatch) as error:
            self._failed(followed, error)

    async def _leader_offset(self, replica: Replica, timestamp: int) -> int | None:
        from strandline.wire.api.k02_list_offsets import (
            ListOffsetsPartition,
            ListOffsetsRequest,
            ListOffsetsTopic,
        )

        request = ListOffsetsRequest(
            replica_id=self._node.node_id,
            topics=(
                ListOffsetsTopic(
                    name=replica.partition.topic,
                    partitions=(
                        ListOffsetsPartition(
                            partition_index=replica.partition.partition,
                            current_leader_epoch=replica.epoch,
                            timestamp=timestamp,
                        ),
                    ),
                ),
            ),
        )
        response = await self._connect().call(request, 9, self._response_timeout_s(0))
        found = response.topics[0].partitions[0]
        return found.offset if found.error_code == ErrorCode.NONE else None

    def _begin_at(self, followed: FetchState, start: int, end: int) -> None:
        """Truncates the log or moves its start; `start` and `end` are the leader's."""
        replica, log, events = followed.replica, followed.replica.log, self._node.events
        cuts = log.cuts
        try:
            if end < log.log_end_offset:
                events.warn("truncated", partition=replica.partition, end=log.log_end_offset, to=end)
                log.truncate_to(end)
            elif start > log.log_end_offset:
                events.warn("replica begins again", partition=replica.partition, at=start)
                log.restart_at(start)
            else:
                log.advance_start(start)
        finally:
            self._was_cut(followed, cuts)

    def _was_cut(self, followed: FetchState, cuts_before: int) -> None:
        if followed.replica.log.cuts != cuts_before:
            followed.replica.after_cut()
        if not followed.replica.has_unsaved_cut:
            followed.sent = None
        else:
            self._save_soon(followed)

    def _save_soon(self, followed: FetchState) -> None:
        """Has the partition fetched again once its checkpoints are saved."""
        self._forget(followed)
        self._node.tasks.start(self._save_cut(followed.replica))

    async def _save_cut(self, replica: Replica) -> None:
        await self._parts.flusher.save_cut(replica)
        self._fetch_now()


class ReplicaFetcher:
    """The fetchers of all leaders, and the partitions of each."""

    def __init__(self, parts: FetcherParts) -> None:
        self._parts = parts
        self._fetchers_per_leader = max(parts.node.config.int("num.replica.fetchers"), 1)
        self._fetchers: dict[tuple[int, int], LeaderFetcher] = {}
        self._followed: dict[TopicPartition, tuple[LeaderFetcher, int, int]] = {}  # fetcher, leader, epoch
        parts.corrupt_replicas.follow = self.follow
        parts.corrupt_replicas.unfollow = self.unfollow

    def follow(self, replica: Replica) -> None:
        """Fetches a follower's partition from its leader; stops fetching a partition that this node leads."""
        role = replica.role
        leader_id = role.leader_id if isinstance(role, PartitionFollower) else -1
        known = self._followed.get(replica.partition)
        if known is not None:
            if known[1] == leader_id and known[2] == role.epoch:
                return
            known[0].unfollow(replica.partition)
            del self._followed[replica.partition]
        if leader_id < 0:
            return
        number = hash_of(replica.partition) % self._fetchers_per_leader
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            fetcher = self._fetchers[leader_id, number] = LeaderFetcher(self._parts, leader_id, number)
        fetcher.follow(replica)
        self._followed[replica.partition] = (fetcher, leader_id, role.epoch)

    def unfollow(self, partition: TopicPartition) -> None:
        known = self._followed.pop(partition, None)
        if known is not None:
            known[0].unfollow(partition)

    def followed(self) -> Iterator[FetchState]:
        """Yields the partitions that this node fetches."""
        for fetcher in list(self._fetchers.values()):
            yield from list(fetcher.followed.values())

    def stop(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.stop()


def hash_of(partition: TopicPartition) -> int:
    """Returns a hash that is the same on every node and in every run."""
    value = partition.partition
    for character in partition.topic:
        value = (value * 31 + ord(character)) & 0x7FFFFFFF
    return value
