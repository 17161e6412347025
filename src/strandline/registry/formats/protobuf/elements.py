"""The parts of a .proto file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

TAG_MAX: Final = 536_870_911
SCALARS: Final = frozenset(
    (
        "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
        "sfixed32", "sfixed64", "bool", "string", "bytes",
    )
)  # fmt: skip


@dataclass(slots=True)
class ProtoOption:
    """An option. `kind` is STRING, BOOLEAN, NUMBER, ENUM, MAP, LIST or OPTION. OPTION means that one field of the
    option's value is set."""

    name: str
    kind: str
    value: Any
    is_extension: bool = False  # true if the name is written in parentheses


@dataclass(slots=True, frozen=True)
class ProtoPrimitive:
    """A value inside of an option's message that is not text."""

    kind: str
    value: str


@dataclass(slots=True)
class ProtoField:
    name: str
    type: str
    tag: int
    label: str | None = None
    options: list[ProtoOption] = field(default_factory=list)
    default: str | None = None
    json_name: str | None = None


@dataclass(slots=True)
class ProtoGroup:
    name: str
    tag: int
    label: str | None
    fields: list[ProtoField]


@dataclass(slots=True)
class ProtoOneOf:
    name: str
    fields: list[ProtoField] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)
    groups: list[ProtoGroup] = field(default_factory=list)


ReservedValue = int | str | tuple[int, int]  # a tag, a name, a range of tags


@dataclass(slots=True)
class ProtoExtensions:
    """Ranges of tags for extensions."""

    values: list[ReservedValue]
    options: list[ProtoOption] = field(default_factory=list)


@dataclass(slots=True)
class ProtoExtend:
    name: str
    fields: list[ProtoField] = field(default_factory=list)


@dataclass(slots=True)
class ProtoConstant:
    name: str
    tag: int
    options: list[ProtoOption] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ProtoEnum:
    name: str
    constants: list[ProtoConstant] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)
    reserved: list[list[ReservedValue]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ProtoMessage:
    name: str
    fields: list[ProtoField] = field(default_factory=list)
    oneofs: list[ProtoOneOf] = field(default_factory=list)
    types: list[ProtoMessage | ProtoEnum] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)
    reserved: list[list[ReservedValue]] = field(default_factory=list)
    extensions: list[ProtoExtensions] = field(default_factory=list)
    extends: list[ProtoExtend] = field(default_factory=list)
    groups: list[ProtoGroup] = field(default_factory=list)

    @property
    def is_map_entry(self) -> bool:
        return any(each.name == "map_entry" and str(each.value) == "true" for each in self.options)


@dataclass(slots=True)
class ProtoRpc:
    name: str
    request: str
    response: str
    is_request_stream: bool = False
    is_response_stream: bool = False
    options: list[ProtoOption] = field(default_factory=list)


@dataclass(slots=True)
class ProtoService:
    name: str
    rpcs: list[ProtoRpc] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ProtoFile:
    syntax: str | None = None
    package: str | None = None
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)
    types: list[ProtoMessage | ProtoEnum] = field(default_factory=list)
    services: list[ProtoService] = field(default_factory=list)
    extends: list[ProtoExtend] = field(default_factory=list)


def map_types(type: str) -> tuple[str, str] | None:
    """Returns key and value of `map<key, value>`; None for any other type."""
    if not type.startswith("map<"):
        return None
    key, _, value = type[4:-1].partition(",")
    return key.strip(), value.strip()
