"""Fetch sessions (KIP-227): a broker remembers the partitions that a consumer reads, and requests name only
changes.

    session 0, epoch 0    everything, and please open a session
    session s, epoch n    only changes since n - 1
    session s, epoch 0    everything; close session s and open another

A broker that opens none responds with session 0, and every request names everything. After a lost connection the
next request closes the session and opens another, because nobody knows whether the broker received the last
request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition

_NO_SESSION = 0
_FIRST_EPOCH = 0
_EPOCH_MAX = 0x7FFFFFFF


class FetchRequestPartition(NamedTuple):
    """One partition of a fetch request."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    bytes_max: int


class FetchRequestData(NamedTuple):
    """The partitions that a fetch request names, and its session."""

    session_id: int
    epoch: int
    changed: dict[TopicPartition, FetchRequestPartition]
    forgotten: dict[TopicPartition, bytes]  # with the topic's id


class FetchSessionHandler:
    """The client's side of the fetch session with one broker."""

    def __init__(self) -> None:
        self._session_id = _NO_SESSION
        self._epoch = _FIRST_EPOCH
        self._known: dict[TopicPartition, FetchRequestPartition] = {}

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._known)

    def next_request(self, partitions: Mapping[TopicPartition, FetchRequestPartition]) -> FetchRequestData:
        """Returns the content of the next request, which is to read exactly these partitions."""
        if self._epoch == _FIRST_EPOCH:
            self._known = dict(partitions)
            return FetchRequestData(self._session_id, _FIRST_EPOCH, dict(partitions), {})
        changed: dict[TopicPartition, FetchRequestPartition] = {}
        forgotten: dict[TopicPartition, bytes] = {}
        for where, known in self._known.items():
            new = partitions.get(where)
            if new is None or new.topic_id != known.topic_id:
                forgotten[where] = known.topic_id
        for where, new in partitions.items():
            if self._known.get(where) != new:
                changed[where] = new
        self._known = dict(partitions)
        return FetchRequestData(self._session_id, self._epoch, changed, forgotten)

    def handle_response(self, error_code: int, session_id: int) -> None:
        """Goes on with the session that a response names."""
        if error_code != ErrorCode.NONE:
            lost = error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._session_id = _NO_SESSION if lost else self._session_id
            self._epoch = _FIRST_EPOCH
        elif session_id == _NO_SESSION:
            self._session_id, self._epoch = _NO_SESSION, _FIRST_EPOCH
        elif self._epoch == _FIRST_EPOCH:
            self._session_id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def handle_error(self) -> None:
        """Has the next request open a new session, after a request without a response."""
        self._epoch = _FIRST_EPOCH
