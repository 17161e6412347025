"""Incremental fetch sessions (KIP-227): a client names its partitions once, and after that only changes.

1. Session id 0 and epoch 0 request a new session, epoch -1 requests none; any other epoch must be the expected next
   one.
2. A full response has every partition. An incremental one has those with records, an error, or another high watermark
   or log start than in the last response.
3. Partitions that returned records move to the end of the session, so that a full response does not starve the others.
4. The cache holds `max.incremental.fetch.session.cache.slots` sessions. A new one replaces one that was not used for
   EVICTION_SECONDS; otherwise the client goes on without a session. A follower's replaces the consumer's session that
   was used the longest time ago.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.ports.random import Random
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTION_SECONDS: Final = 120.0

Key = tuple[str, bytes, int]  # topic name, topic id, partition; one of the first two may be empty


class SessionPartition:
    """A partition in a client's session, with the values of the last response."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "is_denied",
        "known_high_watermark",
        "last_fetched_epoch",
        "log_start",
        "opening_error",
        "sent_high_watermark",
        "sent_log_start",
        "size_max",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.sent_high_watermark = -1
        self.sent_log_start = -1
        self.is_denied = False  # True if the sender of the request may not read it
        self.opening_error = 0  # the error of the last attempt to open it

    def update(self, requested: FetchPartition) -> None:
        self.fetch_offset = requested.fetch_offset
        self.size_max = requested.partition_max_bytes
        self.current_leader_epoch = requested.current_leader_epoch
        self.last_fetched_epoch = requested.last_fetched_epoch
        self.log_start = requested.log_start_offset
        self.known_high_watermark = requested.high_watermark


def partitions_of(request: FetchRequest) -> Iterable[tuple[Key, FetchPartition]]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield (topic.topic, topic.topic_id, partition.partition), partition


class FetchSession:
    __slots__ = ("epoch", "is_follower_s", "last_used", "partitions", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, is_follower_s: bool) -> None:
        self.session_id = session_id
        self.is_follower_s = is_follower_s
        self.epoch = INITIAL_EPOCH + 1
        self.partitions: OrderedDict[Key, SessionPartition] = OrderedDict()
        self.last_used = 0.0
        self.uses_topic_ids = uses_topic_ids

    def update(self, request: FetchRequest) -> None:
        for key, requested in partitions_of(request):
            partition = self.partitions.get(key)
            if partition is None:
                partition = self.partitions[key] = SessionPartition(*key)
            partition.update(requested)
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self.partitions.pop((forgotten.topic, forgotten.topic_id, index), None)

    def gave_records(self, partition: SessionPartition) -> None:
        key = (partition.topic, partition.topic_id, partition.index)
        if key in self.partitions:  # a later request may have removed it while this one waited
            self.partitions.move_to_end(key)


class Fetch:
    """One fetch request, with or without a session."""

    __slots__ = ("is_incremental", "partitions", "session")

    def __init__(
        self, partitions: list[SessionPartition], session: FetchSession | None, is_incremental: bool
    ) -> None:
        self.partitions = partitions
        self.session = session
        self.is_incremental = is_incremental


class FetchSessions:
    def __init__(self, slots: int, random: Random) -> None:
        self._slots = slots
        self._random = random
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self, session_id: int) -> list[SessionPartition]:
        """Returns the partitions of a session; none if it is unknown."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.partitions.values())

    def begin(self, request: FetchRequest, version: int, now: float) -> Fetch:
        """Begins a fetch; raises KafkaError if the session is unknown or its epoch is not the expected one."""
        uses_topic_ids = version >= 13
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            is_new = request.session_epoch == INITIAL_EPOCH
            session = self._create(uses_topic_ids, _is_follower_s(request), now) if is_new else None
            if session is None:
                return Fetch(_one_time(request), None, False)
            session.update(request)
            return Fetch(list(session.partitions.values()), session, False)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = session.epoch + 1 if session.epoch < 0x7FFFFFFF else 1
        session.last_used = now
        self._sessions.move_to_end(session.session_id)
        session.update(request)
        return Fetch(list(session.partitions.values()), session, True)

    def _create(self, uses_topic_ids: bool, is_follower_s: bool, now: float) -> FetchSession | None:
        if len(self._sessions) >= self._slots:
            given_up = self._given_up(is_follower_s, now)
            if given_up is None:
                return None
            del self._sessions[given_up.session_id]
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.below(0x7FFFFFFF)
        session = self._sessions[session_id] = FetchSession(session_id, uses_topic_ids, is_follower_s)
        session.last_used = now
        return session

    def _given_up(self, is_follower_s: bool, now: float) -> FetchSession | None:
        for session in self._sessions.values():
            if now - session.last_used >= EVICTION_SECONDS or (is_follower_s and not session.is_follower_s):
                return session
            if not is_follower_s:
                break
        return None


def _is_follower_s(request: FetchRequest) -> bool:
    state = request.replica_state
    return (request.replica_id if state is None else state.replica_id) >= 0


def _one_time(request: FetchRequest) -> list[SessionPartition]:
    found = []
    for key, requested in partitions_of(request):
        partition = SessionPartition(*key)
        partition.update(requested)
        found.append(partition)
    return found
