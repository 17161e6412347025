"""What an answer to a batch means: a decision of plain values."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from strandline.base.errors import ErrorCode, is_retriable
from strandline.client.sequences import OUT_OF_SEQUENCE


class Verdict(Enum):
    ACKNOWLEDGED = auto()
    RETRY = auto()
    SPLIT = auto()
    REFUSED = auto()  # for good, and certainly not written
    GIVEN_UP = auto()  # for good, and possibly written
    FENCED = auto()  # another producer has taken over


# Answers that leave open whether the batch was, or will be, written.
IN_DOUBT: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)

# After these the leader may be another one.
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
    may_begin_epoch: bool,
    comes_too_early: bool,
    is_transactional: bool,
) -> Verdict:
    """`count` is how many records the batch has; `comes_too_early` whether a batch before it is still to be sent again;
    `may_begin_epoch` whether the producer may go on in a new epoch, which it may not within a transaction."""
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Verdict.ACKNOWLEDGED
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE) and count > 1:
        return Verdict.SPLIT
    if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED) and is_transactional:
        return Verdict.FENCED
    may_retry = is_retriable(code) or (code in OUT_OF_SEQUENCE and (comes_too_early or may_begin_epoch))
    if may_retry and retries_left:
        return Verdict.RETRY
    return Verdict.GIVEN_UP if code in IN_DOUBT or code in OUT_OF_SEQUENCE else Verdict.REFUSED
