"""The things that a request is about: topics with their partitions, groups, transactional ids.

They are found by the names that Kafka's schemas give to fields, so that every API is covered. It is
known beforehand whether a class can name, for example, a group: a fault that asks for one where there is none can never
strike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from strandline.wire.api_index import API_INDEX
from strandline.wire.schema import ZERO_UUID, Request, Struct

TOPIC_ARRAYS: Final = ("topics", "topic_data", "topic_partitions", "v3_and_below_topics")
_TOPIC_NAMES: Final = ("name", "topic", "topic_name")
_PLAIN_TOPICS: Final = ("topic_names", "subscribed_topic_names")
_PARTITION_ARRAYS: Final = ("partitions", "partition_data", "partition_indexes")
_PARTITIONS: Final = ("partition", "partition_index", "index", "partition_id")
_GROUPS: Final = ("group_id", "group_ids", "groups_names")
_TRANSACTIONS: Final = ("transactional_id", "transactional_ids", "v3_and_below_transactional_id")
_COORDINATOR_KEYS: Final = ("key", "coordinator_keys")
_GROUP_KEY: Final = 0
_TRANSACTION_KEY: Final = 1

TopicName = Callable[[bytes], str]


@cache
def message_class(api_key: int) -> type[Request]:
    """Returns the class of an API's requests."""
    module = import_module(f"strandline.wire.api.{API_INDEX[api_key].module}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Request) and value is not Request:
            return value
    raise AssertionError(f"{API_INDEX[api_key].module} has no request")


def names_topics(cls: type[Struct]) -> bool:
    return _has(cls, (*TOPIC_ARRAYS, *_PLAIN_TOPICS))


def names_groups(cls: type[Struct]) -> bool:
    return _has(cls, (*_GROUPS, "coordinator_keys")) or _is_described_groups(cls)


def names_transactions(cls: type[Struct]) -> bool:
    return _has(cls, (*_TRANSACTIONS, "coordinator_keys"))


def _has(cls: type[Struct], names: tuple[str, ...]) -> bool:
    for field in cls.FIELDS:
        element = field.type.element
        if field.name in names:
            return True
        if isinstance(element, type) and issubclass(element, Struct) and _has(element, names):
            return True
    return False


def _is_described_groups(cls: type[Struct]) -> bool:
    """Returns True for DescribeGroups, which has names of groups as plain strings."""
    return any(f.name == "groups" and not isinstance(f.type.element, type) for f in cls.FIELDS)


def partitions_of_topic(topic: Struct) -> list[int] | None:
    """Returns the partitions that an element of a topics array names, or None where it means the whole topic."""
    for name in _PARTITION_ARRAYS:
        parts = getattr(topic, name, None)
        if parts:
            return [part if isinstance(part, int) else partition_number(part) for part in parts]
    return None


def partition_number(part: Any) -> int:
    for name in _PARTITIONS:
        if hasattr(part, name):
            number: int = getattr(part, name)
            return number
    return -1


def name_of_topic(topic: Any, topic_name: TopicName) -> str:
    """Returns the name of the topic that an element of an array is about, looked up by its id where the element has no
    name."""
    for name in _TOPIC_NAMES:
        if found := getattr(topic, name, None):
            return str(found)
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    return topic_name(topic_id) if topic_id != ZERO_UUID else ""


def partition_array(topic: Any) -> str | None:
    """Returns the field of a topic's element that has its partitions."""
    return next((name for name in _PARTITION_ARRAYS if hasattr(topic, name)), None)


def topics_of(message: Any, topic_name: TopicName) -> Iterator[tuple[str, list[int] | None]]:
    """Returns topics with the partitions that a request names, or with None for all partitions."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        element = field.type.element
        if field.name in _PLAIN_TOPICS:
            for name in value or ():
                yield name, None
        elif field.name in TOPIC_ARRAYS:
            for topic in value or ():
                yield name_of_topic(topic, topic_name), partitions_of_topic(topic)
        elif value and isinstance(element, type) and issubclass(element, Struct):
            for each in value if isinstance(value, tuple | list) else (value,):
                yield from topics_of(each, topic_name)


def names_every_topic(message: Any) -> bool:
    """Returns True for a request for all topics: Metadata without a list."""
    return getattr(message, "topics", ()) is None


def groups_of(message: Any) -> Iterator[str]:
    yield from _names(message, _GROUPS, _GROUP_KEY)
    if _is_described_groups(type(message)):
        yield from message.groups


def transactions_of(message: Any) -> Iterator[str]:
    yield from _names(message, _TRANSACTIONS, _TRANSACTION_KEY)


def _names(message: Any, names: tuple[str, ...], key_type: int) -> Iterator[str]:
    for field in message.FIELDS:
        value = getattr(message, field.name)
        element = field.type.element
        is_key = field.name in _COORDINATOR_KEYS and getattr(message, "key_type", None) == key_type
        if field.name in names or is_key:
            yield from (value,) if isinstance(value, str) else value or ()
        elif value and isinstance(element, type) and issubclass(element, Struct):
            for each in value if isinstance(value, tuple | list) else (value,):
                yield from _names(each, names, key_type)
