"""Fetch (key 1), versions 4 to 18: batches from an offset on, up to the high watermark or, for read_committed, the last
stable offset, with the aborted transactions among them.

Waits up to max_wait_ms until there are min_bytes; errors and empty requests get their response at once. Records leave
from the page cache by sendfile. Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (13 and later),
NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR (also where
the log is damaged and another replica takes over), CORRUPT_MESSAGE where it is damaged and no other has it. The
response of the wrong broker names the leader (16 and later, KIP-951). For the whole request:
FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR. A follower reads up to the end of
the log, and each of its requests says up to where it has it. Consumers of version 11 and later may read from followers,
up to their high watermark; with `replica.selector.class` a leader sends a consumer to the replica of its rack that has
the most records (KIP-392).
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.data_access import denial_of_metadata, deny_partitions
from strandline.broker.api.fetch_response import (
    FLEXIBLE_FROM,
    READ_COMMITTED,
    TOPIC_IDS_FROM,
    Read,
    partition_head,
    partition_tags,
    response_tags,
    topic_name,
)
from strandline.broker.api.leader_hints import Hint, LeaderHints
from strandline.broker.api.preferred_replica import FOLLOWER_FETCH_FROM, preferred_replica
from strandline.broker.api.services import Services
from strandline.broker.metadata.raft_server import handle_fetch
from strandline.broker.replication.fetch_sessions import Fetch, SessionPartition
from strandline.broker.replication.replica import Replica
from strandline.broker.server.pending_response import Finished, Handled, PendingResponse
from strandline.broker.server.request_context import Body, RequestContext
from strandline.partition.leader import PartitionLeader
from strandline.storage.log import Log
from strandline.storage.segment import DamagedSegment, Slice
from strandline.wire.api.k01_fetch import FetchRequest
from strandline.wire.codec import decode, encode
from strandline.wire.compiler import uvarint

_STORAGE_ERROR_FROM: Final = 6
_LEADER_HINTS_FROM: Final = 16
_TOP: Final = Struct(">ihi")  # throttle time, error, session id
_INT32: Final = Struct(">i")
# A follower gets a new high watermark with the next records, or after so long without any. At once, it would fetch
# twice for each append (KAFKA-9731).
_WATERMARK_S: Final = 0.05
# Errors by which clients find the leader. Kafka does not count them as failed requests.
_EXPECTED: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_OUT_OF_RANGE,
)
_HINTED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle_raw(services: Services, context: RequestContext) -> Handled:
    request = decode(FetchRequest, context.api_version, context.body, context.position)
    if context.connection.is_controller_listener:
        denial = denial_of_metadata(services, context, request)
        if denial is not None:
            return denial
        return _fetch_metadata(services, context, request)
    try:
        fetch = services.fetch_sessions.begin(request, context.api_version, services.clock.monotonic())
    except KafkaError as error:
        return [
            _TOP.pack(0, error.code, 0) + (b"\x01\x00" if context.api_version >= FLEXIBLE_FROM else bytes(4))
        ]
    if _follower_of(request) >= 0 and context.times.followers is not None:
        context.times = context.times.followers
    if services.authorizer is not None:
        deny_partitions(services, context, fetch, is_follower=_follower_of(request) >= 0)
    replicas = _find_all(services, fetch)
    if None in replicas:
        return _fetch_later(services, context, request, fetch)
    return _fetch(services, context, request, fetch, replicas)


async def _fetch_metadata(services: Services, context: RequestContext, request: FetchRequest) -> Body:
    """Responds to a replica of the metadata log, on the controllers' listener."""
    return (encode(await handle_fetch(services.quorum, request), context.api_version),)


def _follower_of(request: FetchRequest) -> int:
    """Returns the broker that copies a partition, or -1 for a consumer."""
    return request.replica_state.replica_id if request.replica_state is not None else request.replica_id


def _find_all(services: Services, fetch: Fetch) -> list[Replica | None]:
    """Returns the open replica of each partition, looked up once for all steps of one moment."""
    by_id, by_topic = services.image.topics_by_id, services.replicas.by_topic
    found: list[Replica | None] = []
    for partition in fetch.partitions:
        name = partition.topic
        if partition.is_denied:
            found.append(None)
            continue
        if not name and (topic := by_id.get(partition.topic_id)) is not None:
            name = topic.name
        replicas = by_topic.get(name)
        found.append(None if replicas is None else replicas.get(partition.index))
    return found


async def _fetch_later(
    services: Services, context: RequestContext, request: FetchRequest, fetch: Fetch
) -> Finished:
    """Fetches after opening the partitions that are not open yet, if they exist."""
    for partition in fetch.partitions:
        topic = partition.topic or services.node.topic_name(partition.topic_id)
        if partition.is_denied:
            continue
        try:
            await services.replicas.open(topic, partition.index)
            partition.opening_error = 0
        except KafkaError as error:
            partition.opening_error = error.code  # `_read` responds with it
    return _fetch(services, context, request, fetch, _find_all(services, fetch))


def _fetch(
    services: Services,
    context: RequestContext,
    request: FetchRequest,
    fetch: Fetch,
    replicas: list[Replica | None],
) -> Body | PendingResponse:
    if _follower_of(request) >= 0:
        _note_progress(services, request, fetch, replicas)
    reads, is_enough, is_behind = _read_all(services, context, request, fetch, replicas)
    if is_enough or request.max_wait_ms <= 0 or not fetch.partitions:
        return _encode(services, context, request, fetch, reads)
    return _DelayedFetch(services, context, request, fetch, replicas, is_behind=is_behind)


def _note_progress(
    services: Services, request: FetchRequest, fetch: Fetch, replicas: list[Replica | None]
) -> None:
    """Notes the progress of a follower by its fetch offset, which may commit records and change the in-sync set."""
    follower = _follower_of(request)
    epoch = request.replica_state.replica_epoch if request.replica_state is not None else -1
    now = services.clock.monotonic()
    for partition, replica in zip(fetch.partitions, replicas, strict=True):
        if replica is None:
            continue
        role, log, offset = replica.role, replica.log, partition.fetch_offset
        if not isinstance(role, PartitionLeader) or partition.current_leader_epoch != role.epoch:
            continue
        if not log.log_start_offset <= offset <= log.log_end_offset:
            continue
        if _diverging_point(log, partition) is not None:
            continue
        if role.fetched_again(follower, offset, partition.log_start, epoch, now):
            continue
        try:
            replica.fetched_by(follower, offset, partition.log_start, epoch, now)
        except KafkaError:
            continue  # `_read` responds with it
        services.isr.fetched(replica, follower)


class _DelayedFetch(PendingResponse):
    """A long poll: reads again whenever one of its partitions has more, and completes when time is up at the latest."""

    __slots__ = (
        "_context",
        "_fetch",
        "_is_behind",
        "_is_over",
        "_is_scheduled",
        "_replicas",
        "_request",
        "_services",
        "_timer",
    )

    def __init__(
        self,
        services: Services,
        context: RequestContext,
        request: FetchRequest,
        fetch: Fetch,
        replicas: list[Replica | None],
        *,
        is_behind: bool,
    ) -> None:
        super().__init__()
        self._services = services
        self._context = context
        self._request = request
        self._fetch = fetch
        self._is_scheduled = False
        self._is_over = False
        self._replicas = [replica for replica in replicas if replica is not None]
        is_follower, wake = _follower_of(request) >= 0, self._wake
        for replica in self._replicas:
            if is_follower:
                replica.wake_on_both(self, wake)
            else:
                replica.wake_on_advance(self, wake)
        self._is_behind = is_behind
        self._timer = self._expire_in(_WATERMARK_S if is_behind else request.max_wait_ms / 1000)
        context.connection.interrupt_long_poll = self._expire

    def _expire_in(self, seconds: float) -> asyncio.TimerHandle:
        wait_s = min(seconds, self._request.max_wait_ms / 1000)
        return asyncio.get_running_loop().call_later(wait_s, self._expire)

    def _wake(self) -> None:
        """Several appends of one request wake it once."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._check)

    def _check(self) -> None:
        self._is_scheduled = False
        if self._is_over:
            return
        reads, is_enough, is_behind = self._read_all()
        if is_enough:
            self._finish(reads)
        elif is_behind and not self._is_behind:
            self._is_behind = True
            self._timer.cancel()
            self._timer = self._expire_in(_WATERMARK_S)

    def _expire(self) -> None:
        if not self._is_over:
            reads, _, _ = self._read_all()
            self._finish(reads)

    def _read_all(self) -> tuple[list[Read], bool, bool]:
        """Reads from the present replicas: some may have been deleted, or created again."""
        replicas = _find_all(self._services, self._fetch)
        return _read_all(self._services, self._context, self._request, self._fetch, replicas)

    def _finish(self, reads: list[Read]) -> None:
        body = _encode(self._services, self._context, self._request, self._fetch, reads)
        self._end()
        self.complete(body)

    def cancel(self) -> None:
        super().cancel()
        self._end()

    def _end(self) -> None:
        self._is_over = True
        # The timer is cancelled also when it has fired, because it and this object refer to each other.
        self._timer.cancel()
        if self._context.connection.interrupt_long_poll == self._expire:
            self._context.connection.interrupt_long_poll = None
        for replica in self._replicas:
            replica.forget_waker(self)


def _read_all(
    services: Services,
    context: RequestContext,
    request: FetchRequest,
    fetch: Fetch,
    replicas: list[Replica | None],
) -> tuple[list[Read], bool, bool]:
    """Returns the results of the partitions; True if the response is due now (enough bytes, or something urgent); and
    True if it is due soon, because a follower does not know the high watermark of its records.

    A response does not wait for records beyond its limits: the reader fetches again.
    """
    left = min(request.max_bytes, services.fetch_policy.bytes_max)
    total = 0
    must_answer = is_behind = False
    follower = _follower_of(request)
    if services.quotas.is_active and follower < 0:
        left = min(left, services.quotas.fetch_bytes_max(context) or left)
    may_skip = follower >= 0 and fetch.is_incremental
    reads = []
    for partition, replica in zip(fetch.partitions, replicas, strict=True):
        if may_skip and replica is not None and _is_at_rest(partition, replica, follower):
            continue
        read = Read(partition, replica)
        try:
            _read(services, context, request, read, replica, left - total, is_first=total == 0)
        except KafkaError as error:
            read.error_code = error.code
            must_answer = True
        except OSError as error:
            assert replica is not None
            read.error_code = services.replicas.disk_error(replica.directory, error).code
            must_answer = True
        except DamagedSegment as error:
            assert replica is not None
            read.error_code = services.corrupt_replicas.report(replica, error).code
            must_answer = True
        if read.records is not None:
            total += read.records.size
            must_answer = must_answer or read.records.has_more
        must_answer = must_answer or read.preferred >= 0 or read.diverging is not None
        is_behind = is_behind or _is_behind(read)
        # A follower gets a new log start at once.
        must_answer = must_answer or (follower >= 0 and 0 <= partition.sent_log_start < read.log_start)
        if read.error_code == ErrorCode.KAFKA_STORAGE_ERROR and context.api_version < _STORAGE_ERROR_FROM:
            read.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # from which these clients can recover
        reads.append(read)
    # Consumers that read from followers wait for the high watermark of those (KIP-392).
    must_answer = must_answer or (is_behind and services.fetch_policy.selects_by_rack)
    return reads, must_answer or total >= min(request.min_bytes, left), is_behind


def _is_at_rest(partition: SessionPartition, replica: Replica, follower: int) -> bool:
    """Returns True if a follower has all records and offsets of a partition, as for most partitions of a fetch."""
    role, log = replica.role, replica.log
    return (
        isinstance(role, PartitionLeader)
        and partition.fetch_offset == log.log_end_offset
        and partition.sent_high_watermark == role.high_watermark
        and partition.known_high_watermark >= role.high_watermark
        and partition.current_leader_epoch == role.epoch
        and partition.sent_log_start == log.log_start_offset
        and role.has_follower(follower)
        and replica.directory.offline_because is None
        and _diverging_point(log, partition) is None
    )


def _read(
    services: Services,
    context: RequestContext,
    request: FetchRequest,
    read: Read,
    replica: Replica | None,
    left: int,
    *,
    is_first: bool,
) -> None:
    partition = read.partition
    if replica is None:
        if partition.is_denied:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if context.api_version >= TOPIC_IDS_FROM and not services.node.topic_name(partition.topic_id):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        topic = partition.topic or services.node.topic_name(partition.topic_id)
        services.replicas.state_here(topic, partition.index)
        # The log could not be opened, or was deleted and created again while the request waited.
        raise KafkaError(partition.opening_error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
    follower = _follower_of(request)
    if not replica.is_leader and (follower >= 0 or context.api_version < FOLLOWER_FETCH_FROM):
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    replica.check_online()
    replica.check_leader_epoch(partition.current_leader_epoch)
    if follower >= 0:
        replica.leader.check_replica(follower)
    log = replica.log
    read.high_watermark = replica.high_watermark
    read.last_stable = replica.last_stable_offset()
    read.log_start = log.log_start_offset
    offset = partition.fetch_offset
    read.diverging = _diverging_point(log, partition)
    if read.diverging is not None:
        return
    if not log.log_start_offset <= offset <= log.log_end_offset:
        read.high_watermark = read.last_stable = read.log_start = -1
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if follower < 0:
        read.preferred = preferred_replica(services, context, request, replica, offset)
        if read.preferred >= 0:
            return
    upper = read.last_stable if request.isolation_level == READ_COMMITTED else read.high_watermark
    if follower >= 0:
        upper = log.log_end_offset
    if follower >= 0 and _is_throttled(services, replica, follower):
        return
    if offset < upper and (left > 0 or is_first):
        size_max = min(partition.size_max, left)
        read.records = log.read(offset, upper, size_max, whole_first_batch=is_first)
        if read.records is not None and request.isolation_level == READ_COMMITTED and follower < 0:
            read.aborted = log.aborted_in(read.records, offset, upper)


def _is_throttled(services: Services, replica: Replica, follower: int) -> bool:
    """Returns True if replication is throttled for a follower that catches up."""
    throttle = services.leader_quota
    if follower in replica.leader.in_sync or not throttle.lists(replica, services.node.node_id):
        return False
    return throttle.is_exceeded()


def _diverging_point(log: Log, partition: SessionPartition) -> tuple[int, int] | None:
    """Returns where the reader's log diverges: it has records of an epoch beyond that epoch's end here (KIP-320)."""
    read_epoch = partition.last_fetched_epoch
    if read_epoch < 0:
        return None  # most consumers do not send it
    if read_epoch == log.epochs.latest_epoch and partition.fetch_offset <= log.log_end_offset:
        return None  # the usual case of a follower that keeps up
    epoch, end_offset = log.epochs.end_offset_for(read_epoch, log.log_end_offset)
    if epoch < 0:
        return None
    if epoch < read_epoch or end_offset < partition.fetch_offset:
        return epoch, end_offset
    return None


def _encode(
    services: Services, context: RequestContext, request: FetchRequest, fetch: Fetch, reads: list[Read]
) -> Body:
    session = fetch.session
    by_topic: dict[tuple[str, bytes], list[Read]] = {}
    all_metrics = services.node.topics
    for read in reads:
        metrics = all_metrics.others if read.replica is None else read.replica.metrics
        metrics.fetch_requests += 1
        if read.error_code:
            context.times.add_error(read.error_code)
            metrics.failed_fetch_requests += read.error_code not in _EXPECTED
        if fetch.is_incremental and not _is_news(read):
            continue
        partition = read.partition
        partition.sent_high_watermark = read.high_watermark
        partition.sent_log_start = read.log_start
        if read.records is not None:
            if session is not None:
                session.gave_records(partition)
            if _follower_of(request) >= 0:
                metrics.replication_bytes_out += read.records.size
                _note_throttled(services, read)
            else:
                metrics.bytes_out += read.records.size
        by_topic.setdefault((partition.topic, partition.topic_id), []).append(read)
    flexible = context.api_version >= FLEXIBLE_FROM
    hints = LeaderHints(services.image, context.connection.listener)
    body: list[bytes | bytearray | Slice] = []
    head = bytearray(_TOP.pack(0, 0, session.session_id if session is not None else 0))
    if context.api_version < 7:
        head = bytearray(4)
    head += uvarint(len(by_topic) + 1) if flexible else _INT32.pack(len(by_topic))
    for (topic, topic_id), topic_reads in by_topic.items():
        head += topic_name(context.api_version, topic, topic_id)
        head += uvarint(len(topic_reads) + 1) if flexible else _INT32.pack(len(topic_reads))
        for read in topic_reads:
            head += partition_head(context.api_version, request.isolation_level, read)
            if read.records is not None:
                body += (head, read.records)
                head = bytearray()
            if flexible:
                head += partition_tags(read, _hint_for(services, context, read, hints))
        if flexible:
            head.append(0)
    if flexible:
        head += response_tags(list(hints.addresses.values()))
    body.append(head)
    return body


def _hint_for(services: Services, context: RequestContext, read: Read, hints: LeaderHints) -> Hint | None:
    if read.error_code not in _HINTED or context.api_version < _LEADER_HINTS_FROM:
        return None
    partition = read.partition
    return hints.of(partition.topic or services.node.topic_name(partition.topic_id), partition.index)


def _note_throttled(services: Services, read: Read) -> None:
    assert read.replica is not None, "it returned records"
    throttle = services.leader_quota
    if read.records is not None and throttle.lists(read.replica, services.node.node_id):
        throttle.note(read.records.size)


def _is_news(read: Read) -> bool:
    return (
        read.records is not None
        or read.error_code != ErrorCode.NONE
        or read.diverging is not None
        or read.preferred >= 0
        or read.high_watermark != read.partition.sent_high_watermark
        or read.log_start != read.partition.sent_log_start
        # A follower that was sent a value and names another has not taken it over, for example after an error.
        or _is_behind(read)
    )


def _is_behind(read: Read) -> bool:
    """Returns True if a follower could have a higher watermark for the records that it has."""
    return read.partition.known_high_watermark < min(read.high_watermark, read.partition.fetch_offset)
