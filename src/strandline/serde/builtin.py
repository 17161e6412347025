"""The serializers that need nothing but Python, and the names by which settings choose them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

from strandline.serde.contract import RecordDeserializer, RecordSerializer, part_of


@runtime_checkable
class Serializer(Protocol):
    """An object with a method for keys or values; None stands for a record without a key or value, and stays None."""

    def serialize(self, topic: str, value: Any) -> bytes | None: ...


@runtime_checkable
class Deserializer(Protocol):
    def deserialize(self, topic: str, data: bytes | None) -> Any: ...


def _text_to_bytes(topic: str, value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is not str")
    return value.encode()


def _json_to_bytes(topic: str, value: Any) -> bytes | None:
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _bytes_to_text(topic: str, data: bytes | None) -> str | None:
    return None if data is None else str(data, "utf-8")


def _bytes_to_json(topic: str, data: bytes | None) -> Any:
    return None if data is None else json.loads(data)


_SERIALIZERS: Final[dict[str, Callable[[str, Any], bytes | None] | None]] = {
    "bytes": None,
    "none": None,
    "str": _text_to_bytes,
    "string": _text_to_bytes,
    "json": _json_to_bytes,
}
_DESERIALIZERS: Final[dict[str, Callable[[str, bytes | None], Any] | None]] = {
    "bytes": None,
    "none": None,
    "str": _bytes_to_text,
    "string": _bytes_to_text,
    "json": _bytes_to_json,
}


def serializer_for(
    given: Any, setting: str = "serializer"
) -> Callable[[str, Any], bytes | None] | RecordSerializer | None:
    """Returns the function of (topic, value) that a setting stands for; None if bytes are written as they are. A
    record serializer is returned as an object, the one for keys or for values by the setting's name."""
    _refuse_class(given, setting, "serialize_record")
    if isinstance(given, RecordSerializer):
        serializer: RecordSerializer = part_of(given, setting.partition(".")[0])
        return serializer
    if isinstance(given, Serializer):
        return given.serialize
    return _function_for(given, setting, _SERIALIZERS)


def deserializer_for(
    given: Any, setting: str = "deserializer"
) -> Callable[[str, bytes | None], Any] | RecordDeserializer | None:
    """Returns the function of (topic, data) that a setting stands for; None if bytes are read as they are. A record
    deserializer is returned as an object, the one for keys or for values by the setting's name."""
    _refuse_class(given, setting, "deserialize_record")
    if isinstance(given, RecordDeserializer):
        deserializer: RecordDeserializer = part_of(given, setting.partition(".")[0])
        return deserializer
    if isinstance(given, Deserializer):
        return given.deserialize
    return _function_for(given, setting, _DESERIALIZERS)


def _refuse_class(given: Any, setting: str, method: str) -> None:
    if isinstance(given, type) and hasattr(given, method):
        raise ValueError(f"{setting} is the class {given.__name__}: make an object of it, with its registry")


def _function_for(given: Any, setting: str, named: dict[str, Any]) -> Callable[[str, Any], Any] | None:
    if given is None or given is bytes:
        return None
    if given is str:
        given = "str"
    if isinstance(given, str):
        name = given.lower()
        if name not in named:
            raise ValueError(f"{setting}={given!r}: known names are {', '.join(named)}")
        found: Callable[[str, Any], Any] | None = named[name]
        return found
    if not callable(given):
        raise ValueError(
            f"{setting} must be a name, a function or an object with a method for it, not {given!r}"
        )
    return given if _takes_topic(given) else lambda topic, value: given(value)


def _takes_topic(function: Callable[..., Any]) -> bool:
    """True if a function takes (topic, value) and not the value alone: it has two required arguments or more."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len([p for p in parameters if p.kind in places and p.default is inspect.Parameter.empty]) >= 2
