"""The declaration of Kafka's messages: one class for all versions, whose fields say in which versions they exist.

A message class is plain data with slots. `wire.compiler` turns a class and a version into an encoder and a
decoder; nothing outside `wire` knows that versions exist. The declarations under `wire/api` and `wire/records`
are compared, version by version, with the schemas inside Apache Kafka's own jars (tests/compat).

Rules of a declaration:
- `versions` is Kafka's notation: "0+", "3-7", "2".
- A field that is missing in the version being decoded gets its default.
- A field that is missing in the version being encoded must hold its default, unless it is `ignorable` or the message
  is a response.
- `tag` makes a field a tagged field from `tagged` on; a tagged field at its default is not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, dataclass_transform

VERSION_MAX = 32767


class Versions(NamedTuple):
    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high


NO_VERSIONS = Versions(0, -1)


def parse_versions(text: str | None) -> Versions:
    if text is None or text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), VERSION_MAX)
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


class FieldType(NamedTuple):
    """A wire type. `code` is its struct format letter if its size is fixed, otherwise empty."""

    name: str
    code: str = ""
    size: int = 0
    element: Any = None


boolean = FieldType("bool", "?", 1)
int8 = FieldType("int8", "b", 1)
int16 = FieldType("int16", "h", 2)
uint16 = FieldType("uint16", "H", 2)
int32 = FieldType("int32", "i", 4)
uint32 = FieldType("uint32", "I", 4)
int64 = FieldType("int64", "q", 8)
float64 = FieldType("float64", "d", 8)
uuid = FieldType("uuid", "16s", 16)
string = FieldType("string")
bytes_ = FieldType("bytes")
record_bytes = FieldType("records")

ZERO_UUID = bytes(16)


def array(element: FieldType | type[Struct]) -> FieldType:
    return FieldType("array", "", 0, element)


def struct(cls: type[Struct]) -> FieldType:
    return FieldType("struct", "", 0, cls)


_NO_DEFAULT: Any = object()


class Field:
    __slots__ = (
        "default",
        "flexible",
        "ignorable",
        "is_required",
        "name",
        "nullable",
        "tag",
        "tagged",
        "type",
        "versions",
    )

    def __init__(
        self,
        type: FieldType,
        versions: str,
        nullable: str | None,
        default: Any,
        tag: int | None,
        tagged: str | None,
        ignorable: bool,
        flexible: str | None,
    ) -> None:
        self.name = ""
        self.type = type
        self.versions = parse_versions(versions)
        self.nullable = parse_versions(nullable)
        self.default = None if default is _NO_DEFAULT else default
        self.is_required = default is _NO_DEFAULT
        self.tag = tag
        self.tagged = parse_versions(tagged)
        self.ignorable = ignorable
        # A field may stop the compact encoding that its message uses (the client id in a request header).
        self.flexible = None if flexible is None else parse_versions(flexible)


def field(
    type: FieldType,
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: Any = _NO_DEFAULT,
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
    flexible: str | None = None,
) -> Any:
    return Field(type, versions, nullable, default, tag, tagged, ignorable, flexible)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class _StructMeta(type):
    """Builds a slotted class with a keyword-only constructor, which takes far less time at import than a dataclass."""

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        key: int = -1,
        versions: str = "0+",
        flexible: str | None = None,
        latest_unstable: bool = False,
    ) -> _StructMeta:
        fields: list[Field] = []
        for attribute in namespace.get("__annotations__", {}):
            declared = namespace.pop(attribute, None)
            if isinstance(declared, Field):
                declared.name = attribute
                fields.append(declared)
        namespace["__slots__"] = tuple(f.name for f in fields)
        namespace["FIELDS"] = tuple(fields)
        namespace["API_KEY"] = key
        namespace["VERSIONS"] = parse_versions(versions)
        namespace["FLEXIBLE"] = parse_versions(flexible)
        namespace["__init__"] = _constructor(fields)
        return super().__new__(mcs, name, bases, namespace)


def _constructor(fields: Sequence[Field]) -> Any:
    if not fields:
        return lambda self: None
    defaults = {f"_d{i}": f.default for i, f in enumerate(fields)}
    params = ", ".join(f.name if f.is_required else f"{f.name}=_d{i}" for i, f in enumerate(fields))
    body = "\n".join(f"    self.{f.name} = {f.name}" for f in fields)
    namespace: dict[str, Any] = defaults
    exec(f"def __init__(self, *, {params}):\n{body}\n", namespace)
    return namespace["__init__"]


class Struct(metaclass=_StructMeta):
    """A group of fields inside a message."""

    FIELDS: ClassVar[tuple[Field, ...]]
    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[Versions]
    FLEXIBLE: ClassVar[Versions]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # mutable data

    def __repr__(self) -> str:
        inside = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.FIELDS)
        return f"{type(self).__name__}({inside})"


class Message(Struct):
    """A whole request, response, header or record, which `wire.codec` encodes and decodes."""


class Request(Message):
    """A request; its `API_KEY`, `VERSIONS` and `FLEXIBLE` are also those of the response."""


class Response(Message):
    """The response to the request with the same key."""
