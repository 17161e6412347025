"""The contract between clients and serializers (docs/adr/0048).

A plain serializer is a function of topic and value. A record serializer also sees the headers of the record and may add
to them. If it lacks something that only a request can bring, it raises `LookupNeeded`. The client awaits the look-up,
on the loop or from a thread that blocks, and calls the serializer again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from strandline.ports.clock import Clock
from strandline.ports.web import Web

PARTS: Final = ("key", "value")
RecordHeader = tuple[str, bytes | None]

# The most look-ups for one record; a schema and its imports are one look-up. A record that needs more shows that a
# cache is too small for the schemas in use.
LOOKUPS_MAX: Final = 16


class LookupNeeded(Exception):
    """A serializer needs a look-up first: the caller awaits `look_up()` and calls the serializer again."""

    def __init__(self, what: str, look_up: Callable[[], Awaitable[None]]) -> None:
        super().__init__(f"{what} was not looked up yet")
        self.look_up = look_up


@runtime_checkable
class RecordSerializer(Protocol):
    """An object that turns a key or value into bytes, and may add headers to the list."""

    def serialize_record(self, topic: str, value: Any, headers: list[Any]) -> bytes | None:
        """Returns the bytes. Raises LookupNeeded, or an error that says what is wrong with the value."""
        ...


@runtime_checkable
class RecordDeserializer(Protocol):
    """An object that turns bytes into a key or value."""

    def deserialize_record(self, topic: str, data: bytes, headers: Sequence[RecordHeader]) -> Any:
        """Returns the value. Raises LookupNeeded, or an error that says what is wrong with the bytes."""
        ...


def part_of(serde: Any, part: str) -> Any:
    """Returns the serializer or deserializer for one part of records, `key` or `value`, by its `for_part` if it has
    one."""
    return serde.for_part(part) if part in PARTS and hasattr(serde, "for_part") else serde


def give_ports(serde: object, web: Web | None, clock: Clock) -> None:
    """Gives a serializer the ports of the client that uses it, if it has the method `use_ports`."""
    use_ports = getattr(serde, "use_ports", None)
    if use_ports is not None:
        use_ports(web, clock)
