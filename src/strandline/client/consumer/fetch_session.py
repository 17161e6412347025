"""Fetch sessions (KIP-227): a broker remembers what a consumer reads, and requests name only what changed.

    session 0, epoch 0    everything, and please open a session
    session s, epoch n    only what changed since n - 1
    session s, epoch 0    everything; close session s and open another

A broker that opens none answers with session 0, and every request names everything. After a lost connection the next
request closes the session and opens another, because nobody knows whether the last request was taken in.
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
    """What one partition of a fetch asks for."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    bytes_max: int


class FetchRequestData(NamedTuple):
    session_id: int
    epoch: int
    changed: dict[TopicPartition, FetchRequestPartition]
    forgotten: dict[TopicPartition, bytes]  # with the topic's id


class FetchSessionHandler:
    """One broker's session, from the asking side."""

    def __init__(self) -> None:
        self._session_id = _NO_SESSION
        self._epoch = _FIRST_EPOCH
        self._known: dict[TopicPartition, FetchRequestPartition] = {}

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._known)

    def next_request(
        self, partitions_to_read: Mapping[TopicPartition, FetchRequestPartition]
    ) -> FetchRequestData:
        """What the next request says in order to read exactly `wanted`."""
        if self._epoch == _FIRST_EPOCH:
            self._known = dict(partitions_to_read)
            return FetchRequestData(self._session_id, _FIRST_EPOCH, dict(partitions_to_read), {})
        changed: dict[TopicPartition, FetchRequestPartition] = {}
        forgotten: dict[TopicPartition, bytes] = {}
        for where, known in self._known.items():
            new = partitions_to_read.get(where)
            if new is None or new.topic_id != known.topic_id:
                forgotten[where] = known.topic_id
        for where, new in partitions_to_read.items():
            if self._known.get(where) != new:
                changed[where] = new
        self._known = dict(partitions_to_read)
        return FetchRequestData(self._session_id, self._epoch, changed, forgotten)

    def handle_response(self, error_code: int, session_id: int) -> None:
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
        self._epoch = _FIRST_EPOCH
