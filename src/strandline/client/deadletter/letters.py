"""Retried records and dead letters as values: their topics, their headers, and the choice of one for a failed
record.

A record that failed goes to a topic of its group, one for each attempt, because a delay per topic keeps that topic
in the order in which its records are due. After the last attempt, or at once if no attempt can help, it goes to the
dead letter topic, which all groups of a topic share.

    orders -> orders.billing.retry.1 -> orders.billing.retry.2 -> orders.dlq

Key, value and the application's headers stay as they were, byte by byte; ours all begin with `dlq.`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strandline.client.consumer.record_decoder import ConsumerRecord, RecordHeader

PREFIX: Final = "dlq."
ERROR: Final = "dlq.error"
ERROR_CLASS: Final = "dlq.error_class"
GROUP: Final = "dlq.group"
ATTEMPT: Final = "dlq.attempt"  # how many attempts have failed
RETRY_AT: Final = "dlq.retry_at"  # milliseconds since the epoch
ORIGINAL_TOPIC: Final = "dlq.original_topic"
ORIGINAL_PARTITION: Final = "dlq.original_partition"
ORIGINAL_OFFSET: Final = "dlq.original_offset"
ORIGINAL_TIMESTAMP: Final = "dlq.original_timestamp"
REDRIVEN: Final = "dlq.redriven"  # how often the record was put back

# An error's text is for people; a stack of nested messages must not make a record larger than a topic takes.
ERROR_BYTES_MAX: Final = 2000
# The most that the headers add, with a topic's longest name (249 bytes) twice and the error.
HEADERS_BYTES_MAX: Final = 4096
# The max.request.size of producers that write letters. A letter has headers on top of the size that its record's topic
# allows, so the bound must be higher; the letter's own topic bounds it.
REQUEST_BYTES_MAX: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A record to be sent. A handler may return some: they are sent if, and with transactions only if, it succeeds."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str | bytes, bytes | None]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The place where a record was read first, and its attempts since."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    attempt: int = 0
    retry_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The attempts of a group. `backoff_ms` holds a delay for each further attempt; errors of `fatal` classes are
    not tried again."""

    group: str
    backoff_ms: tuple[int, ...]
    fatal: tuple[type[Exception], ...] = ()

    def retry_topics(self, topic: str) -> list[str]:
        """Returns the retry topics of a topic, in the order of attempts."""
        return [f"{topic}.{self.group}.retry.{number + 1}" for number in range(len(self.backoff_ms))]

    def outcome(
        self, record: ConsumerRecord, origin: Origin, error: Exception, *, now_ms: int, is_fatal: bool = False
    ) -> Output:
        """Returns the record to send for one whose attempt has ended with this error: to a retry topic or to the dead
        letter topic."""
        failed = origin.attempt + 1
        is_dead = is_fatal or isinstance(error, self.fatal) or failed > len(self.backoff_ms)
        headers = [
            *without_ours(record.headers),
            *((name, value) for name, value in record.headers if name == REDRIVEN),
            (ERROR, _clipped(str(error))),
            (ERROR_CLASS, f"{type(error).__module__}.{type(error).__qualname__}".encode()[:ERROR_BYTES_MAX]),
            (GROUP, self.group.encode()),
            (ATTEMPT, b"%d" % failed),
            (ORIGINAL_TOPIC, origin.topic.encode()),
            (ORIGINAL_PARTITION, b"%d" % origin.partition),
            (ORIGINAL_OFFSET, b"%d" % origin.offset),
            (ORIGINAL_TIMESTAMP, b"%d" % origin.timestamp_ms),
        ]
        topic = dead_letter_topic(origin.topic)
        if not is_dead:
            topic = self.retry_topics(origin.topic)[failed - 1]
            headers.append((RETRY_AT, b"%d" % (now_ms + self.backoff_ms[failed - 1])))
        return Output(topic=topic, value=record.value, key=record.key, headers=tuple(headers))


def dead_letter_topic(topic: str) -> str:
    """Returns the dead letter topic of a topic."""
    return f"{topic}.dlq"


def origin_of(record: ConsumerRecord) -> Origin:
    """Returns the origin of a retried record or dead letter, from its headers; of any other record, its own place."""
    headers = dict(record.headers)
    topic = headers.get(ORIGINAL_TOPIC)
    if topic is None:
        return Origin(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp,
        )
    return Origin(
        topic=topic.decode(errors="replace"),
        partition=_number(headers.get(ORIGINAL_PARTITION), -1),
        offset=_number(headers.get(ORIGINAL_OFFSET), -1),
        timestamp_ms=_number(headers.get(ORIGINAL_TIMESTAMP), -1),
        attempt=_number(headers.get(ATTEMPT), 0),
        retry_at_ms=_number(headers.get(RETRY_AT), 0),
    )


def without_ours(headers: Iterable[RecordHeader]) -> list[RecordHeader]:
    """Returns the headers of the application, without those that dead letters add."""
    return [(name, value) for name, value in headers if not name.startswith(PREFIX)]


def redriven(record: ConsumerRecord, topic: str | None = None) -> Output:
    """Returns a dead letter as the record that it was, for its original topic or another. A header counts how often it
    was redriven."""
    times = _number(dict(record.headers).get(REDRIVEN), 0) + 1
    return Output(
        topic=topic or origin_of(record).topic,
        value=record.value,
        key=record.key,
        headers=(*without_ours(record.headers), (REDRIVEN, b"%d" % times)),
    )


def _number(text: bytes | None, otherwise: int) -> int:
    try:
        return otherwise if text is None else int(text)
    except ValueError:
        return otherwise


def _clipped(text: str) -> bytes:
    """Returns the first ERROR_BYTES_MAX bytes at most, cut so that they are still UTF-8."""
    return text.encode(errors="replace")[:ERROR_BYTES_MAX].decode(errors="ignore").encode()
