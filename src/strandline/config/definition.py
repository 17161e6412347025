"""The declarations of configuration keys: their type, their allowed values, and when they may change.

A key is declared once, in one of the `*_keys` modules, in the words `active` (Strandline acts on it today) or
`accepted` (parsed, checked and shown, but nothing depends on it yet):

    active("num.partitions", INT, 1, at_least(1), MEDIUM).documented("Partitions of a topic whose …")

DescribeConfigs, the start-up checks, the alteration of configs and the reference page all read these keys. The messages
of validators are Apache Kafka's, because clients see them.

A broker imports all of this at its start, so there are no dataclasses and enums in this package: they would take longer
to create than the keys themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from strandline.config import addresses
from strandline.config.java import parse_duration_ms, print_value

ValueType = Literal["BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"]
BOOLEAN: Final = "BOOLEAN"
STRING: Final = "STRING"
INT: Final = "INT"
SHORT: Final = "SHORT"
LONG: Final = "LONG"
DOUBLE: Final = "DOUBLE"
LIST: Final = "LIST"
CLASS: Final = "CLASS"
PASSWORD: Final = "PASSWORD"

# The numbers by which DescribeConfigs names the types (KIP-569); 0 is a type that the broker does not know.
TYPE_CODES: Final[dict[ValueType, int]] = {
    BOOLEAN: 1,
    STRING: 2,
    INT: 3,
    SHORT: 4,
    LONG: 5,
    DOUBLE: 6,
    LIST: 7,
    CLASS: 8,
    PASSWORD: 9,
}
UNKNOWN_TYPE_CODE: Final = 0

Importance = Literal["high", "medium", "low"]
HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"

# KIP-226: a broker's key is fixed at the start, or can be changed for one broker, or for one broker and for all.
UpdateMode = Literal["read-only", "per-broker", "cluster-wide", "per-topic", "per-group", "per-subscription"]
READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"
PER_TOPIC: Final = "per-topic"
PER_GROUP: Final = "per-group"
PER_SUBSCRIPTION: Final = "per-subscription"

KeyEffect = Literal["active", "accepted"]
ACTIVE: Final = "active"
ACCEPTED: Final = "accepted"

ConfigValue = bool | int | float | str | tuple[str, ...] | None


class Required:
    """Stands for the default of a key that has none, and that must be set to start a node."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = Required()


def invalid_value(name: str, value: object, message: str) -> str:
    return f"Invalid value {print_value(value)} for configuration {name}: {message}"


class Range:
    """A number between two bounds, both included; `other` is a number outside of them with a meaning of its own."""

    __slots__ = ("largest", "other", "smallest")

    def __init__(self, smallest: float, largest: float | None, other: int | None = None) -> None:
        self.smallest = smallest
        self.largest = largest
        self.other = other

    def complaint(self, name: str, value: ConfigValue) -> str | None:
        if value is None:
            return invalid_value(name, value, "Value must be non-null")
        assert isinstance(value, (int, float)), name
        too_large = self.largest is not None and value > self.largest
        if (self.smallest <= value and not too_large) or value == self.other:
            return None
        if self.other is not None:
            rule = f"between {self.smallest} and {self.largest} or equal to {self.other}"
        else:
            rule = f"no more than {self.largest}" if too_large else f"at least {self.smallest}"
        return invalid_value(name, value, f"Value must be {rule}")

    def allowed(self) -> str:
        if self.largest is None:
            return f"at least {self.smallest}"
        return f"{self.smallest} to {self.largest}" + (f", or {self.other}" if self.other is not None else "")


class OneOf:
    """A value that is one of some words."""

    __slots__ = ("any_case", "words")

    def __init__(self, words: tuple[str, ...], any_case: bool = False) -> None:
        self.words = words
        self.any_case = any_case

    def complaint(self, name: str, value: ConfigValue) -> str | None:
        if not self.any_case:
            if value in self.words:
                return None
            return invalid_value(name, value, "String must be one of: " + ", ".join(self.words))
        if isinstance(value, str) and value.upper() in [word.upper() for word in self.words]:
            return None
        words = ", ".join(word.upper() for word in self.words)
        return invalid_value(name, value, f"String must be one of (case insensitive): {words}")

    def allowed(self) -> str:
        return ", ".join(self.words) + (" (in any case)" if self.any_case else "")


class ListOf:
    """A list without empty entries, in which repeated entries count once. Without `words` every entry is allowed."""

    __slots__ = ("empty_allowed", "null_allowed", "words")

    def __init__(
        self, words: tuple[str, ...] = (), *, empty_allowed: bool = True, null_allowed: bool = False
    ) -> None:
        self.words = words
        self.empty_allowed = empty_allowed
        self.null_allowed = null_allowed

    def complaint(self, name: str, value: ConfigValue) -> str | None:
        if value is None:
            return None if self.null_allowed else f"Configuration '{name}' values must not be null."
        assert isinstance(value, tuple), name
        if not value and not self.empty_allowed:
            choice = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {choice}"
        for entry in value:
            if not entry:
                return f"Configuration '{name}' values must not be empty."
            if self.words and entry not in self.words:
                return invalid_value(name, entry, "String must be one of: " + ", ".join(self.words))
        return None

    def allowed(self) -> str:
        entries = f"list of {', '.join(self.words)}" if self.words else "list"
        return entries if self.empty_allowed else "non-empty " + entries


class Spelled:
    """A text or list that must follow a syntax; `complaint` returns the fault of a value, or None."""

    __slots__ = ("complaint", "syntax")

    def __init__(self, syntax: str, complaint: Callable[[str, ConfigValue], str | None]) -> None:
        self.syntax = syntax
        self.complaint = complaint

    def allowed(self) -> str:
        return self.syntax


def _empty_text_flaw(name: str, value: ConfigValue) -> str | None:
    return invalid_value(name, value, "String must be non-empty") if value == "" else None


def _null_text_flaw(name: str, value: ConfigValue) -> str | None:
    return invalid_value(name, value, "entry must be non null") if value is None else None


def _voters_flaw(name: str, value: ConfigValue) -> str | None:
    return next(filter(None, (addresses.voter_flaw(name, entry) for entry in _entries(value))), None)


def _servers_flaw(name: str, value: ConfigValue) -> str | None:
    return next(filter(None, (addresses.server_flaw(name, entry) for entry in _entries(value))), None)


def _replicas_flaw(name: str, value: ConfigValue) -> str | None:
    entries = [entry.strip() for entry in _entries(value)]
    if "".join(entries) == "*" or all(map(_is_replica, entries)):
        return None
    rule = f"{name} must be the literal '*' or a list of replicas in the following format: "
    return invalid_value(name, value, rule + "[partitionId]:[brokerId],[partitionId]:[brokerId],...")


def _is_replica(entry: str) -> bool:
    partition, colon, broker = entry.partition(":")
    return not entry or (
        bool(colon) and all(part.isascii() and part.isdigit() for part in (partition, broker))
    )


def _offset_reset_flaw(name: str, value: ConfigValue) -> str | None:
    kind, colon, duration = str(value).partition(":")
    if value in ("earliest", "latest") or (
        kind == "by_duration" and colon and parse_duration_ms(duration) is not None
    ):
        return None
    rule = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    return invalid_value(name, value, f"Invalid value `{value}` for configuration {name}. {rule}")


def _entries(value: ConfigValue) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value


NON_EMPTY: Final = Spelled("non-empty text", _empty_text_flaw)
NON_NULL: Final = Spelled("any text", _null_text_flaw)
VOTERS: Final = Spelled("list of id@host:port", _voters_flaw)
SERVERS: Final = Spelled("list of host:port", _servers_flaw)
OFFSET_RESETS: Final = Spelled("earliest, latest or by_duration:<duration>", _offset_reset_flaw)
REPLICAS: Final = Spelled("* or a list of partition:broker", _replicas_flaw)

ANY_LIST: Final = ListOf()
ANY_LIST_OR_NULL: Final = ListOf(null_allowed=True)
NON_EMPTY_LIST: Final = ListOf(empty_allowed=False)
NON_EMPTY_LIST_OR_NULL: Final = ListOf(empty_allowed=False, null_allowed=True)
GZIP_LEVELS: Final = Range(1, 9, other=-1)
CODECS: Final = OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))
RECORD_VALIDATIONS: Final = OneOf(("full", "header"))
TIMESTAMP_TYPES: Final = OneOf(("CreateTime", "LogAppendTime"))
CLEANUP_POLICIES: Final = ListOf(("compact", "delete"))

Validator = Range | OneOf | ListOf | Spelled


def at_least(smallest: float) -> Range:
    return Range(smallest, None)


def between(smallest: float, largest: float) -> Range:
    return Range(smallest, largest)


def one_of(*words: str) -> OneOf:
    return OneOf(words)


class ConfigKey(NamedTuple):
    """One setting as Kafka declares it, and whether Strandline acts on it."""

    name: str
    type: ValueType
    default: ConfigValue | Required
    validator: Validator | None
    importance: Importance
    update_mode: UpdateMode
    effect: KeyEffect
    doc: str
    # Kafka does not document some keys, and shows them only if they are set.
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        """True for passwords, which are never shown: DescribeConfigs responds with null."""
        return self.type == PASSWORD

    @property
    def shown_only_if_set(self) -> bool:
        """True for keys that Kafka shows only if they are set."""
        return self.internal or self.name.startswith("strandline.")

    @property
    def type_code(self) -> int:
        return TYPE_CODES[self.type]

    def allowed(self) -> str:
        """Returns the allowed values in words."""
        if self.validator is not None:
            return self.validator.allowed()
        return _ALLOWED_BY_TYPE[self.type]


_ALLOWED_BY_TYPE: Final[dict[ValueType, str]] = {
    BOOLEAN: "true or false",
    STRING: "any text",
    INT: "any 32-bit integer",
    SHORT: "any 16-bit integer",
    LONG: "any 64-bit integer",
    DOUBLE: "any number",
    LIST: "list",
    CLASS: "name of a class",
    PASSWORD: "any text",
}


class _Declaration:
    """A key without its documentation, which every key must get."""

    __slots__ = ("_fields",)

    def __init__(
        self,
        name: str,
        type: ValueType,
        default: ConfigValue | Required,
        validator: Validator | None,
        importance: Importance,
        update_mode: UpdateMode,
        effect: KeyEffect,
    ) -> None:
        self._fields = (name, type, default, validator, importance, update_mode, effect)

    def documented(self, doc: str) -> ConfigKey:
        return ConfigKey(*self._fields, doc)

    def internal(self, doc: str) -> ConfigKey:
        return ConfigKey(*self._fields, doc, internal=True)


def active(
    name: str,
    type: ValueType,
    default: ConfigValue | Required,
    validator: Validator | None,
    importance: Importance,
    update_mode: UpdateMode = READ_ONLY,
) -> _Declaration:
    """Declares a key that Strandline acts on."""
    return _Declaration(name, type, default, validator, importance, update_mode, ACTIVE)


def accepted(
    name: str,
    type: ValueType,
    default: ConfigValue | Required,
    validator: Validator | None,
    importance: Importance,
    update_mode: UpdateMode = READ_ONLY,
) -> _Declaration:
    """Declares a key that Strandline parses, checks and shows, and does not act on yet."""
    return _Declaration(name, type, default, validator, importance, update_mode, ACCEPTED)
