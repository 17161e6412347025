"""Arguments of calls that peers take in other forms, or that are easily mistaken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")

# A setting of a topic or broker as an application may write it.
ConfigValue = str | int | float | bool | None


def listed(values: Iterable[T], what: str) -> list[T]:
    """Returns the values as a list. A single text is refused, because its letters would be taken for names."""
    if isinstance(values, str | bytes):
        raise TypeError(f"{what} must be a list, not the text {values!r}: write [{values!r}]")
    return list(values)


def config_text(name: str, value: ConfigValue) -> str | None:
    """Returns a setting's value as text, as Kafka wants it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise TypeError(f"the value of {name} must be text, a number or a flag, not {value!r}")


def config_texts(configs: Mapping[str, ConfigValue]) -> dict[str, str | None]:
    """Returns the settings with their values as text."""
    return {name: config_text(name, value) for name, value in configs.items()}
