"""The errors of the client: one tree of classes under `KafkaError`, each with Kafka's code and advice.

Every error has its `code` and `name` from Kafka's protocol, says whether a retry can help (`retriable`), and says in
its text what a person can do. `error_for(code, message)` returns an error of the class that belongs to a code; a code
without a class of its own is a plain `KafkaError`. Classes also derive from Python's own where one fits, so that
`except TimeoutError` and `except ValueError` do what a reader expects.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, error_name
from strandline.base.errors import KafkaError as _KafkaError

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "BufferFullError",
    "ClosedError",
    "CommitFailedError",
    "ConfigError",
    "ConnectionFailedError",
    "DeliveryTimeoutError",
    "ErrorCode",
    "FencedInstanceError",
    "GroupError",
    "IllegalStateError",
    "InvalidTopicError",
    "KafkaError",
    "KafkaTimeoutError",
    "NoOffsetError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "ProducerFencedError",
    "RecordTooLargeError",
    "SerializationError",
    "TopicExistsError",
    "TransactionAbortedError",
    "UnknownTopicError",
    "UnresolvedBootstrapError",
    "UnsupportedVersionError",
    "WrongClusterError",
    "error_for",
]


class KafkaError(_KafkaError):
    """The root of all errors that a client raises on purpose."""

    default_code: int = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(
        self,
        code: int | None = None,
        message: str = "",
        records: tuple[tuple[int, str], ...] = (),
        *,
        advice: str | None = None,
    ) -> None:
        number = int(self.default_code if code is None else code)
        super().__init__(number, message, records)
        self.advice = _ADVICE.get(number, "") if advice is None else advice

    @property
    def name(self) -> str:
        return error_name(self.code)

    def __str__(self) -> str:
        # Not the parents' text: OSError, which some classes also are, makes its own out of the arguments.
        return f"{self.name}: {self.message}" + (f" ({self.advice})" if self.advice else "")


class ConfigError(KafkaError, ValueError):
    """A setting is unknown, not allowed, or contradicts another."""

    default_code = ErrorCode.INVALID_CONFIG

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(None, message, advice="")
        self.key = key


class KafkaTimeoutError(KafkaError, TimeoutError):
    """Something did not happen within the time that the settings allow."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class BufferFullError(KafkaTimeoutError):
    """`send` waited for max.block.ms and no memory of buffer.memory came free."""


class DeliveryTimeoutError(KafkaTimeoutError):
    """A record was not acknowledged within delivery.timeout.ms; the broker may or may not have it."""


class ConnectionFailedError(KafkaError, ConnectionError):
    """No connection could be made, or the connection was lost; requests in flight may or may not have been carried
    out."""

    default_code = ErrorCode.NETWORK_EXCEPTION


class UnresolvedBootstrapError(ConnectionFailedError):
    """No name in bootstrap.servers has an address."""


class WrongClusterError(KafkaError):
    """An address leads to another cluster than the one that this client began with, or than `cluster.id` names."""

    default_code = ErrorCode.INCONSISTENT_CLUSTER_ID


class UnsupportedVersionError(KafkaError):
    """The broker has no version of a request that this client can speak."""

    default_code = ErrorCode.UNSUPPORTED_VERSION


class ClosedError(KafkaError, RuntimeError):
    """The client is closed, or was closed while the call waited."""

    default_code = ErrorCode.INVALID_REQUEST


class IllegalStateError(KafkaError, RuntimeError):
    """The call does not fit the state of the client, such as a commit without a begin."""

    default_code = ErrorCode.INVALID_REQUEST


class SerializationError(KafkaError, ValueError):
    """A serializer raised, or returned something other than bytes; `__cause__` is the error that it raised."""

    default_code = ErrorCode.INVALID_RECORD


class RecordTooLargeError(KafkaError, ValueError):
    """The record is larger than max.request.size, buffer.memory or the topic's max.message.bytes."""

    default_code = ErrorCode.MESSAGE_TOO_LARGE


class UnknownTopicError(KafkaError):
    """The topic or partition does not exist."""

    default_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidTopicError(KafkaError, ValueError):
    """The name cannot be the name of a topic."""

    default_code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicExistsError(KafkaError):
    """A topic of this name exists already."""

    default_code = ErrorCode.TOPIC_ALREADY_EXISTS


class AuthenticationError(KafkaError, PermissionError):
    """The login failed, or TLS did: a wrong password, a mechanism that the broker does not take, a certificate that one
    side does not trust. Trying again does not help."""

    default_code = ErrorCode.SASL_AUTHENTICATION_FAILED


class AuthorizationError(KafkaError, PermissionError):
    """The cluster does not allow this to the client."""

    default_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class ProducerFencedError(KafkaError):
    """Another producer with this transactional.id has taken over; this one can only be closed."""

    default_code = ErrorCode.PRODUCER_FENCED


class OutOfOrderSequenceError(KafkaError):
    """The broker misses records that came before these: acknowledged records have been lost."""

    default_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class TransactionAbortedError(KafkaError):
    """The record belonged to a transaction that was aborted."""

    default_code = ErrorCode.TRANSACTION_ABORTABLE


class OffsetOutOfRangeError(KafkaError):
    """The position lies outside of the log, and auto.offset.reset says to stop there."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE


class NoOffsetError(KafkaError):
    """A partition has no committed offset, and auto.offset.reset says to stop there."""

    default_code = ErrorCode.OFFSET_NOT_AVAILABLE


class GroupError(KafkaError):
    """The group's coordinator refuses a request of a member."""

    default_code = ErrorCode.UNKNOWN_MEMBER_ID


class CommitFailedError(GroupError):
    """The group has moved on: others own the partitions now, and the offsets were not committed."""

    default_code = ErrorCode.ILLEGAL_GENERATION


class FencedInstanceError(GroupError):
    """Another member with this group.instance.id has taken over."""

    default_code = ErrorCode.FENCED_INSTANCE_ID


_CLASSES: Final[dict[int, type[KafkaError]]] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.REQUEST_TIMED_OUT: KafkaTimeoutError,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLargeError,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLargeError,
    ErrorCode.NETWORK_EXCEPTION: ConnectionFailedError,
    ErrorCode.INVALID_TOPIC_EXCEPTION: InvalidTopicError,
    ErrorCode.SASL_AUTHENTICATION_FAILED: AuthenticationError,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: AuthenticationError,
    ErrorCode.ILLEGAL_SASL_STATE: AuthenticationError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedVersionError,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExistsError,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: OutOfOrderSequenceError,
    ErrorCode.INVALID_PRODUCER_EPOCH: ProducerFencedError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.INCONSISTENT_CLUSTER_ID: WrongClusterError,
    ErrorCode.TRANSACTION_ABORTABLE: TransactionAbortedError,
    ErrorCode.ILLEGAL_GENERATION: CommitFailedError,
    ErrorCode.FENCED_INSTANCE_ID: FencedInstanceError,
    ErrorCode.UNKNOWN_MEMBER_ID: GroupError,
    ErrorCode.REBALANCE_IN_PROGRESS: GroupError,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: GroupError,
    ErrorCode.INVALID_GROUP_ID: GroupError,
    ErrorCode.INVALID_SESSION_TIMEOUT: GroupError,
    ErrorCode.NON_EMPTY_GROUP: GroupError,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupError,
    ErrorCode.GROUP_MAX_SIZE_REACHED: GroupError,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: GroupError,
    ErrorCode.FENCED_MEMBER_EPOCH: GroupError,
    ErrorCode.UNRELEASED_INSTANCE_ID: GroupError,
    ErrorCode.UNSUPPORTED_ASSIGNOR: GroupError,
    ErrorCode.STALE_MEMBER_EPOCH: GroupError,
}

_ADVICE: Final[dict[int, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create the topic, or check its name and the partition's number",
    ErrorCode.REQUEST_TIMED_OUT: "see whether the brokers are up and reachable, or allow more time",
    ErrorCode.NETWORK_EXCEPTION: "see whether the brokers are up and bootstrap.servers names them",
    ErrorCode.MESSAGE_TOO_LARGE: "make the record smaller, or raise max.request.size and the topic's "
    "max.message.bytes",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas are in sync for acks=all; see min.insync.replicas",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check security.protocol, sasl.mechanism, user, password and certificates",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "set sasl.mechanism to one that the listener takes",
    ErrorCode.ILLEGAL_SASL_STATE: "the listener does not log clients in: check security.protocol and the port",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant this client the operation on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "grant this client the operation on the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "grant this client the operation on the cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant this client the use of the transactional.id",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old, or does not have this feature",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "check bootstrap.servers: the address belongs to another cluster",
    ErrorCode.PRODUCER_FENCED: "close this producer; only one may use a transactional.id at a time",
    ErrorCode.INVALID_PRODUCER_EPOCH: "close this producer; only one may use a transactional.id at a time",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "lower transaction.timeout.ms, or raise the brokers' "
    "transaction.max.timeout.ms",
    ErrorCode.TRANSACTION_ABORTABLE: "abort the transaction and begin it again",
    ErrorCode.OFFSET_OUT_OF_RANGE: "seek to an offset within the log, or set auto.offset.reset",
    ErrorCode.ILLEGAL_GENERATION: "poll again: the group has rebalanced and will assign partitions again",
    ErrorCode.REBALANCE_IN_PROGRESS: "poll again: the group is rebalancing",
    ErrorCode.UNKNOWN_MEMBER_ID: "poll again: the member was removed from its group and must join again",
    ErrorCode.FENCED_INSTANCE_ID: "close this consumer; only one may use a group.instance.id at a time",
}


def error_for(code: int, message: str | None = "", records: tuple[tuple[int, str], ...] = ()) -> KafkaError:
    """Returns the error that stands for a code in a response."""
    return _CLASSES.get(code, KafkaError)(code, message or "", records)
