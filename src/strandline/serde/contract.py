"""The contract between clients and serializers (docs/adr/0048).

A plain serializer is a function of topic and value. A record serializer sees the headers of the record too, may add to
them, and may lack something that only a request can bring: then it raises `LookupNeeded`. The client awaits the look-up
in the way that is its own, on the loop or from a thread that blocks, and calls the serializer again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from strandline.ports.clock import Clock
from strandline.ports.web import Web

PARTS: Final = ("key", "value")
RecordHeader = tuple[str, bytes | None]

# How often one record may need a look-up: a schema and those that it imports are one. More means that a cache is too
# small for what is in use at once.
LOOKUPS_MAX: Final = 16


class LookupNeeded(Exception):
    """A serializer needs a look-up first. `await look_up()` carries it out; then the call is made again."""

    def __init__(self, what: str, look_up: Callable[[], Awaitable[None]]) -> None:
        super().__init__(f"{what} was not looked up yet")
        self.look_up = look_up


@runtime_checkable
class RecordSerializer(Protocol):
    """Turns a key or value into bytes. It may add headers to the list."""

    def serialize_record(self, topic: str, value: Any, headers: list[Any]) -> bytes | None:
        """The bytes; raises LookupNeeded, or an error that says what is wrong with the value."""
        ...


@runtime_checkable
class RecordDeserializer(Protocol):
    """Turns bytes into a key or value."""

    def deserialize_record(self, topic: str, data: bytes, headers: Sequence[RecordHeader]) -> Any:
        """The value; raises LookupNeeded, or an error that says what is wrong with the bytes."""
        ...


def part_of(serde: Any, part: str) -> Any:
    """The serializer or deserializer for one part of records, `key` or `value`: those that care have `for_part`."""
    return serde.for_part(part) if part in PARTS and hasattr(serde, "for_part") else serde


def give_ports(serde: object, web: Web | None, clock: Clock) -> None:
    """Gives a serializer the ports of the client that uses it, if it has use for them."""
    use_ports = getattr(serde, "use_ports", None)
    if use_ports is not None:
        use_ports(web, clock)
