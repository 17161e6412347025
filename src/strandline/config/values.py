"""Conversion of a setting's text to its value, and of the value to the text that clients get."""

from __future__ import annotations

from typing import assert_never

from strandline.config.definition import ConfigKey, ConfigValue, ListOf, invalid_value
from strandline.config.java import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    SHORT_MAX,
    SHORT_MIN,
    parse_double,
    parse_integer,
    print_double,
    trim,
)

# The blanks that are allowed around the commas of a list.
_BLANKS = " \t\n\v\f\r"


class InvalidConfig(ValueError):
    """An invalid setting: its key, its value, the fault, and the allowed values.

    `message` is Apache Kafka's message for a client; the text of the exception adds the allowed values.
    """

    def __init__(self, key: str, value: str | None, message: str, allowed: str = "") -> None:
        super().__init__(key, value, message, allowed)
        self.key = key
        self.value = value
        self.message = message
        self.allowed = allowed

    def __str__(self) -> str:
        known = [] if self.value is None or self.value in self.message else [f"given: {self.value}"]
        known += [f"allowed: {self.allowed}"] if self.allowed else []
        where = "" if self.key in self.message else f"{self.key}: "
        return where + self.message + (f" ({'; '.join(known)})" if known else "")


def parse(key: ConfigKey, text: str | None) -> ConfigValue:
    """Returns the value of `text`; raises InvalidConfig if it is no value, or not an allowed one."""
    value = None if text is None else _parse_type(key, text)
    if isinstance(value, tuple) and isinstance(key.validator, ListOf):
        value = tuple(dict.fromkeys(value))
    if key.validator is not None:
        complaint = key.validator.complaint(key.name, value)
        if complaint is not None:
            raise InvalidConfig(key.name, text, complaint, key.allowed())
    return value


def _parse_type(key: ConfigKey, text: str) -> ConfigValue:
    trimmed = trim(text)
    match key.type:
        case "STRING" | "CLASS" | "PASSWORD":
            return trimmed
        case "BOOLEAN":
            return _parse_boolean(key, text)
        case "INT":
            return _number(key, text, parse_integer(trimmed, INT_MIN, INT_MAX))
        case "LONG":
            return _number(key, text, parse_integer(trimmed, LONG_MIN, LONG_MAX))
        case "SHORT":
            return _number(key, text, parse_integer(trimmed, SHORT_MIN, SHORT_MAX))
        case "DOUBLE":
            return _number(key, text, parse_double(trimmed))
        case "LIST":
            return tuple(entry.strip(_BLANKS) for entry in trimmed.split(",")) if trimmed else ()
        case _:
            assert_never(key.type)


def _parse_boolean(key: ConfigKey, text: str) -> bool:
    word = trim(text).lower()
    if word not in ("true", "false"):
        sentence = invalid_value(key.name, text, "Expected value to be either true or false")
        raise InvalidConfig(key.name, text, sentence, key.allowed())
    return word == "true"


def _number(key: ConfigKey, text: str, number: float | None) -> float:
    """Returns `number`; raises InvalidConfig if the text was none. For the type checker every integer is a float."""
    if number is None:
        sentence = invalid_value(key.name, text, f"Not a number of type {key.type}")
        raise InvalidConfig(key.name, text, sentence, key.allowed())
    return number


def render(value: ConfigValue) -> str | None:
    """Returns the text of a value in DescribeConfigs."""
    if value is None:
        return None
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return print_double(value)
    return str(value)
