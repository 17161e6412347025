"""The deserializers of a consumer, as functions over the columns of a batch: one call for each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from strandline.client.errors import ConnectionFailedError, KafkaError, SerializationError
from strandline.ports.clock import Clock
from strandline.ports.web import Web
from strandline.serde.contract import RecordDeserializer, RecordHeader, give_ports
from strandline.serde.errors import RegistryUnavailable

# From topic, the bytes of keys or values, and the headers of the same records, to keys or values.
ColumnDeserializer = Callable[[str, Sequence[bytes | None], Sequence[Sequence[RecordHeader]]], list[Any]]


def column_deserializer(given: Any) -> ColumnDeserializer | None:
    """Returns the deserializer of a column, from a function of topic and bytes or from a record deserializer; None for
    None. It is not called for null keys and values: those stay None."""
    if given is None:
        return None
    if isinstance(given, RecordDeserializer):
        deserialize = given.deserialize_record

        def with_headers(
            topic: str, column: Sequence[bytes | None], headers: Sequence[Sequence[RecordHeader]]
        ) -> list[Any]:
            return [
                None if data is None else deserialize(topic, data, pairs)
                for data, pairs in zip(column, headers, strict=True)
            ]

        return with_headers

    def plain(
        topic: str, column: Sequence[bytes | None], headers: Sequence[Sequence[RecordHeader]]
    ) -> list[Any]:
        return [None if data is None else given(topic, data) for data in column]

    return plain


class Deserializers:
    """The deserializers of keys and of values; None leaves bytes as they are. `is_wanted` is called with the bytes of a
    batch's records: one for which it is false is passed over."""

    __slots__ = ("_given", "is_wanted", "key", "value")

    def __init__(self, key: Any = None, value: Any = None) -> None:
        self._given = (key, value)
        self.key = column_deserializer(key)
        self.value = column_deserializer(value)
        self.is_wanted: Callable[[bytes], bool] | None = None

    def use_ports(self, web: Web | None, clock: Clock) -> None:
        for each in self._given:
            give_ports(each, web, clock)


def lookup_error(error: Exception) -> KafkaError:
    """Returns the error of a look-up that a deserializer needed. The position stays, so the next poll tries again."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, RegistryUnavailable):
        return ConnectionFailedError(
            None, str(error), advice="see whether the schema registry runs; poll again"
        )
    return SerializationError(None, f"a deserializer's look-up raised {type(error).__name__}: {error}")
