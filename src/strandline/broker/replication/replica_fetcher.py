"""Followers pull: for each broker that leads something this node follows, one connection that fetches.

1. A partition is fetched from the leader that the image names, in the leader epoch of the image, until that changes.
2. Records are appended as they are, at the offsets they have; the next request, from the new end, acknowledges them.
3. Where the logs part the follower goes back to the point that the leader names, by epochs (KIP-101, 279, 595), and
   however far that is: below what is committed only if the leader was elected uncleanly, or lost it, and that is said.
4. One partition's trouble does not hold up the others: it is left out for a moment and tried again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.nodes import Peer
from strandline.broker.replication.replica import Replica
from strandline.partition.follower import Follower, truncation_point
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

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

FETCH_VERSION: Final = 18
_SLACK_S: Final = 5.0
_LATEST, _EARLIEST = -1, -2
# How long a partition is left out that its leader refuses: mostly that one has not heard of its election yet.
_HOLD_S: Final = 0.02
_THROTTLED_S: Final = 0.2
# The same if what came could not be written: a full disk, for instance.
_TROUBLE_S: Final = 0.5


class _Followed:
    """A partition that is fetched, with what the leader was told of it last."""

    __slots__ = ("held_until", "replica", "told", "trouble")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.told: tuple[int, int, int, int] | None = None  # end, epoch, high watermark, start
        self.held_until = 0.0
        self.trouble = ""  # why it could not be written, as it was said


class Source:
    """One broker that is fetched from."""

    def __init__(self, broker: Broker, node_id: int, lane: int) -> None:
        self._broker = broker
        self._node_id = node_id
        self._lane = lane
        self._followed: dict[TopicPartition, _Followed] = {}
        self._forgotten: list[tuple[bytes, int]] = []
        self._session_id = 0
        self._session_epoch = 0
        self._peer: Peer | None = None
        self._more = asyncio.Event()
        self._is_asking = False
        self._task: asyncio.Task[Any] | None = None

    def follow(self, replica: Replica) -> None:
        self._followed[replica.partition] = _Followed(replica)
        self._ask_now()
        if self._task is None:
            self._task = self._broker.tasks.start(self._run())

    def unfollow(self, partition: TopicPartition) -> None:
        followed = self._followed.pop(partition, None)
        if followed is not None:
            self._forget(followed)

    def _forget(self, followed: _Followed) -> None:
        """Takes it out of the session, from the next request on."""
        if followed.told is not None:
            followed.told = None
            self._forgotten.append((followed.replica.topic_id, followed.replica.partition.partition))

    def stop(self) -> None:
        if self._peer is not None:
            self._peer.close()

    def _ask_now(self) -> None:
        """There is something to ask for that a request which waits at the leader does not name."""
        self._more.set()
        if self._is_asking and self._peer is not None:
            self._peer.nudge()

    # The loop

    async def _run(self) -> None:
        backoff_s = self._broker.config.int("replica.fetch.backoff.ms") / 1000
        while True:
            if not self._followed:
                self._more.clear()
                await self._more.wait()
            try:
                await self._fetch_once()
            except OSError:
                self._reset_session()
                await asyncio.sleep(min(backoff_s, 0.05))
            except KafkaError as error:
                self._broker.events.warn("replica fetch", source=self._node_id, error=error)
                self._reset_session()
                await asyncio.sleep(backoff_s)

    def _patience_s(self, wait_ms: int) -> float:
        """How long to wait for an answer that the leader may hold back for `wait_ms`."""
        return min(self._broker.config.int("replica.socket.timeout.ms") / 1000, wait_ms / 1000 + _SLACK_S)

    def _reset_session(self) -> None:
        self._session_id = self._session_epoch = 0
        self._forgotten.clear()
        for followed in self._followed.values():
            followed.told = None

    async def _fetch_once(self) -> None:
        config = self._broker.config
        wait_ms = config.int("replica.fetch.wait.max.ms")
        peer = self._connect()  # before what is asked: another connection has another session
        request = self._request(wait_ms)
        if not request.topics and not request.forgotten_topics_data and not self._is_told():
            self._more.clear()
            await self._more.wait()  # all of it is held up, and an empty request would be answered at once
            return
        self._is_asking = True
        try:
            response = await peer.call(request, FETCH_VERSION, self._patience_s(wait_ms))
        finally:
            self._is_asking = False
        if response.error_code != ErrorCode.NONE:
            self._reset_session()
            return
        self._session_id = response.session_id
        self._session_epoch = self._session_epoch + 1 if self._session_id else 0
        for topic in response.responses:
            name = self._broker.topic_name(topic.topic_id)
            for data in topic.partitions:
                followed = self._followed.get(TopicPartition(name, data.partition_index))
                if followed is not None:
                    self._take(followed, data)
        if not self._session_id:
            # The leader has no room for a session, and remembers nothing of this: the next request names all again.
            for followed in self._followed.values():
                followed.told = None

    def _is_told(self) -> bool:
        return any(followed.told is not None for followed in self._followed.values())

    def _connect(self) -> Peer:
        state = self._broker.image.brokers.get(self._node_id)
        endpoint = None if state is None else state.endpoint(self._broker.config.inter_broker_listener_name)
        if endpoint is None:
            raise ConnectionError(f"broker {self._node_id} has no address")
        peer = self._peer
        if peer is None or (peer.host, peer.port) != (endpoint.host, endpoint.port):
            if peer is not None:
                peer.close()
            self._reset_session()
            client_id = f"replica-{self._broker.node_id}-{self._lane}"
            peer = self._peer = Peer(self._broker.replica_network, client_id, endpoint.host, endpoint.port)
            peer.on_lost = lambda: self._broker.absences.suspect(self._node_id)
        return peer

    def _request(self, wait_ms: int) -> FetchRequest:
        config = self._broker.config
        size_max = config.int("replica.fetch.max.bytes")
        now = self._broker.clock.monotonic()
        by_topic: dict[bytes, list[FetchPartition]] = {}
        for followed in self._followed.values():
            replica = followed.replica
            if followed.held_until > now or replica.has_unsaved_cut:
                continue
            # Most topics are not limited: nobody is asked about those.
            if replica.config.follower_replication_throttled_replicas and self._is_throttled(followed):
                continue
            log, role = replica.log, replica.role
            wanted = (log.log_end_offset, role.epoch, role.high_watermark, log.log_start_offset)
            if followed.told == wanted:
                continue
            followed.told = wanted
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
            # A request that names a partition and forgets it ends with it forgotten.
            if all(index != named.partition for named in by_topic.get(topic_id, ())):
                forgotten.setdefault(topic_id, []).append(index)
        self._forgotten.clear()
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._broker.node_id, replica_epoch=self._broker.broker_epoch
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

    def _is_throttled(self, followed: _Followed) -> bool:
        """Whether a replica that catches up has to wait because its side has moved enough for now."""
        replica, throttle = followed.replica, self._broker.follower_throttle
        if not throttle.lists(replica, self._broker.node_id) or not throttle.is_exceeded():
            return False
        topic = self._broker.image.topics.get(replica.partition.topic)
        state = None if topic is None else topic.partitions.get(replica.partition.partition)
        if state is not None and self._broker.node_id in state.in_sync:
            return False
        self._hold(followed, _THROTTLED_S)
        return True

    # What came

    def _take(self, followed: _Followed, data: PartitionData) -> None:
        replica = followed.replica
        if not isinstance(replica.role, Follower) or replica.role.leader_id != self._node_id:
            return
        if followed.told is None:
            return  # an answer to what was asked before it was held up or followed anew
        try:
            if data.error_code != ErrorCode.NONE:
                self._refused(followed, data)
            elif data.diverging_epoch is not None:
                self._go_back(followed, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            else:
                if data.records:
                    if self._broker.follower_throttle.lists(replica, self._broker.node_id):
                        self._broker.follower_throttle.note(len(data.records))
                    replica.append_fetched(memoryview(data.records), self._broker.clock.wall_ms())
                    if replica.has_unsaved_cut:
                        self._save_soon(followed)
                replica.told_high_watermark(data.high_watermark)
                if data.log_start_offset > replica.log.log_start_offset:
                    replica.log.advance_start(min(data.log_start_offset, replica.log.log_end_offset))
                followed.trouble = ""
        except (KafkaError, OSError, CorruptBatch) as error:
            self._in_trouble(followed, error)

    def _refused(self, followed: _Followed, data: PartitionData) -> None:
        replica = followed.replica
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._broker.tasks.start(self._begin_anew(followed))
            self._hold(followed)
            return
        # The leader or this node does not know of the other's epoch yet: the image will tell.
        self._hold(followed)
        if data.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
            replica.wake_all()

    def _in_trouble(self, followed: _Followed, error: KafkaError | OSError | CorruptBatch) -> None:
        """What goes wrong with a partition here is its own trouble (rule 4), and is said once while it lasts."""
        replica = followed.replica
        if isinstance(error, OSError):
            error = self._broker.replicas.disk_error(replica.directory, error)
        elif isinstance(error, DamagedSegment):
            error = self._broker.damaged_logs.found(replica, error)
        if followed.trouble != str(error):
            followed.trouble = str(error)
            self._broker.events.warn("replication held up", partition=replica.partition, why=error)
        self._hold(followed, _TROUBLE_S)

    def _hold(self, followed: _Followed, seconds: float = _HOLD_S) -> None:
        self._forget(followed)
        followed.held_until = self._broker.clock.monotonic() + seconds
        asyncio.get_running_loop().call_later(seconds * 1.1, self._ask_now)

    def _go_back(self, followed: _Followed, epoch: int, end_offset: int) -> None:
        replica = followed.replica
        log = replica.log
        target = truncation_point(log.epochs.entries, log.log_end_offset, epoch, end_offset)
        events = self._broker.events
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

    async def _begin_anew(self, followed: _Followed) -> None:
        """The leader does not have what comes next here. Either its log ends before (an unclean election), and what is
        too much here goes; or it no longer has it, and the log here begins where the leader's does."""
        replica = followed.replica
        refused = (replica.log.cuts, replica.log.log_end_offset)
        try:
            end = await self._ask_offset(replica, _LATEST)
            start = await self._ask_offset(replica, _EARLIEST)
        except OSError:
            return
        if end is None or start is None or self._followed.get(replica.partition) is not followed:
            return  # meanwhile it was deleted, or has another leader
        if (replica.log.cuts, replica.log.log_end_offset) != refused:
            return  # it was fetched again meanwhile: what came since must not go for an answer from before
        try:
            self._begin_at(followed, start, end)
        except (KafkaError, OSError, CorruptBatch) as error:
            self._in_trouble(followed, error)

    async def _ask_offset(self, replica: Replica, timestamp: int) -> int | None:
        from strandline.wire.api.k02_list_offsets import (
            ListOffsetsPartition,
            ListOffsetsRequest,
            ListOffsetsTopic,
        )

        request = ListOffsetsRequest(
            replica_id=self._broker.node_id,
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
        response = await self._connect().call(request, 9, self._patience_s(0))
        answer = response.topics[0].partitions[0]
        return answer.offset if answer.error_code == ErrorCode.NONE else None

    def _begin_at(self, followed: _Followed, start: int, end: int) -> None:
        """`start` and `end` are the leader's."""
        replica, log, events = followed.replica, followed.replica.log, self._broker.events
        cuts = log.cuts
        try:
            if end < log.log_end_offset:
                events.warn("truncated", partition=replica.partition, end=log.log_end_offset, to=end)
                log.truncate_to(end)
            elif start > log.log_end_offset:
                events.warn("replica begins anew", partition=replica.partition, at=start)
                log.restart_at(start)
            else:
                log.advance_start(start)
        finally:
            self._was_cut(followed, cuts)

    def _was_cut(self, followed: _Followed, cuts_before: int) -> None:
        if followed.replica.log.cuts != cuts_before:
            followed.replica.after_cut()
        if not followed.replica.has_unsaved_cut:
            followed.told = None
        else:
            self._save_soon(followed)

    def _save_soon(self, followed: _Followed) -> None:
        """It is fetched again when the cut is on the device."""
        self._forget(followed)
        self._broker.tasks.start(self._save_cut(followed.replica))

    async def _save_cut(self, replica: Replica) -> None:
        await self._broker.save_cut(replica)
        self._ask_now()


class Replication:
    """Which partition is fetched from whom."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sources: dict[tuple[int, int], Source] = {}
        self._place: dict[TopicPartition, tuple[Source, int, int]] = {}  # source, leader, epoch

    def place(self, replica: Replica) -> None:
        """Fetches a follower's partition from its leader, and stops fetching what this node leads."""
        role = replica.role
        leader_id = role.leader_id if isinstance(role, Follower) else -1
        known = self._place.get(replica.partition)
        if known is not None:
            if known[1] == leader_id and known[2] == role.epoch:
                return
            known[0].unfollow(replica.partition)
            del self._place[replica.partition]
        if leader_id < 0:
            return
        lane = hash_of(replica.partition) % max(self._broker.config.int("num.replica.fetchers"), 1)
        source = self._sources.get((leader_id, lane))
        if source is None:
            source = self._sources[leader_id, lane] = Source(self._broker, leader_id, lane)
        source.follow(replica)
        self._place[replica.partition] = (source, leader_id, role.epoch)

    def forget(self, partition: TopicPartition) -> None:
        known = self._place.pop(partition, None)
        if known is not None:
            known[0].unfollow(partition)

    def stop(self) -> None:
        for source in self._sources.values():
            source.stop()


def hash_of(partition: TopicPartition) -> int:
    """The same on every node and in every run."""
    value = partition.partition
    for character in partition.topic:
        value = (value * 31 + ord(character)) & 0x7FFFFFFF
    return value
