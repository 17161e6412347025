"""Names the subject under which a schema is registered: by topic, by record, or by both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Takes the topic, the part (key or value) and the record's full name, and returns the subject.
SubjectNameStrategy = Callable[[str, str, str | None], str]


def topic_name(topic: str, part: str, record: str | None) -> str:
    """Returns `<topic>-key` or `<topic>-value`: there is one schema for a topic."""
    return f"{topic}-{part}"


def record_name(topic: str, part: str, record: str | None) -> str:
    """Returns the record's own name: there is one schema for a type of record, in all topics."""
    return _named(record, "record")


def topic_record_name(topic: str, part: str, record: str | None) -> str:
    """Returns `<topic>-<record>`: there is a schema for each type of record in a topic."""
    return f"{topic}-{_named(record, 'topic_record')}"


def _named(record: str | None, strategy: str) -> str:
    if record is None:
        raise ValueError(
            f"the strategy {strategy} needs a schema with a name: an Avro record, a Protobuf message, or a JSON Schema "
            "with a title"
        )
    return record


_BY_NAME: Final[dict[str, SubjectNameStrategy]] = {
    "topic": topic_name,
    "record": record_name,
    "topic_record": topic_record_name,
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}


def strategy_of(given: str | SubjectNameStrategy) -> SubjectNameStrategy:
    """Returns the strategy that a name stands for: a short name or that of Java's class. A function is a strategy
    itself."""
    if callable(given):
        return given
    strategy = _BY_NAME.get(given.rpartition(".")[2])
    if strategy is None:
        raise ValueError(f"subject_name_strategy={given!r}: use topic, record, topic_record, or a function")
    return strategy
