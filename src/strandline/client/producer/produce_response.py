"""The meaning of a Produce response for one batch: a decision of plain values."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from strandline.base.errors import ErrorCode, is_retriable
from strandline.client.producer.sequences import OUT_OF_SEQUENCE


class Verdict(Enum):
    """The decision about a batch after a response."""

    ACKNOWLEDGED = auto()
    RETRY = auto()
    SPLIT = auto()
    REFUSED = auto()  # for good, and certainly not written
    GIVEN_UP = auto()  # for good, and possibly written
    FENCED = auto()  # another producer has taken over


# Retriable refusals that come before anything is written. Other retriable ones can come after: a leader that is deposed
# while it waits for its followers refuses a batch that it has written with NOT_LEADER_OR_FOLLOWER.
_CERTAIN: Final = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CORRUPT_MESSAGE}) | OUT_OF_SEQUENCE


def leaves_doubt(code: int) -> bool:
    """Returns True if a batch may have been written, or may yet be, after a response with this error."""
    return code not in _CERTAIN and (is_retriable(code) or code == ErrorCode.UNKNOWN_SERVER_ERROR)


# After these errors the leader may be another one.
STALE_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
    }
)


def verdict(
    code: int,
    *,
    count: int,
    retries_left: bool,
    is_in_doubt: bool,
    may_begin_epoch: bool,
    comes_too_early: bool,
    is_transactional: bool,
) -> Verdict:
    """Decides about a batch. `count` is how many records the batch has; `is_in_doubt` whether an earlier attempt
    may have written it, so that a refusal of this one proves nothing; `comes_too_early` whether a batch before it
    is still to be sent again; `may_begin_epoch` whether the producer may go on in a new epoch, which it may not
    within a transaction."""
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Verdict.ACKNOWLEDGED
    is_too_large = code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
    if is_too_large and count > 1 and not is_in_doubt:
        return Verdict.SPLIT
    if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED) and is_transactional:
        return Verdict.FENCED
    may_retry = is_retriable(code) or (code in OUT_OF_SEQUENCE and (comes_too_early or may_begin_epoch))
    if may_retry and retries_left:
        return Verdict.RETRY
    return (
        Verdict.GIVEN_UP if is_in_doubt or leaves_doubt(code) or code in OUT_OF_SEQUENCE else Verdict.REFUSED
    )
