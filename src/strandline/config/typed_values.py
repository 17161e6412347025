"""Access to settings by name, each with the type of its key."""

from __future__ import annotations

from typing import Any

# Inside the class the plain names are its methods.
_int = int
_float = float


class TypedValues:
    """The base of classes that keep values by key name in `_values`."""

    __slots__ = ("_values",)

    _values: dict[str, Any]

    def value(self, name: str) -> Any:
        """Returns the value of any key; None stands for Kafka's null."""
        return self._values[name]

    def int(self, name: str) -> _int:
        value = self._values[name]
        assert isinstance(value, int), f"{name} is no integer: {value!r}"
        assert not isinstance(value, bool), f"{name} is a flag"
        return value

    def optional_int(self, name: str) -> _int | None:
        return None if self._values[name] is None else self.int(name)

    def double(self, name: str) -> _float:
        value = self._values[name]
        assert isinstance(value, float), f"{name} is no double: {value!r}"
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), f"{name} is no boolean: {value!r}"
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), f"{name} is no text: {value!r}"
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._values[name] is None else self.text(name)

    def strings(self, name: str) -> tuple[str, ...]:
        """Returns the entries of a list; none if the list is null."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple), f"{name} is no list: {value!r}"
        return value or ()


def nearest(name: str, known: Any) -> str:
    """Returns '; did you mean …?' if a known name is similar to this one, otherwise an empty text."""
    import difflib  # imported only for a typing error, because it takes longer than all the rest

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
