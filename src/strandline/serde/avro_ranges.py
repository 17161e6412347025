"""Checks that values of Avro's type int have 32 bits: fastavro writes larger ones, which no reader accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from strandline.serde.errors import ValueDoesNotFit

Check = Callable[[Any], None]

_INT_MAX: Final = (1 << 31) - 1
_WIDE: Final = ("long", "float", "double")


def int_check(schema: Any) -> Check | None:
    """Returns a function that raises ValueDoesNotFit, with the field's name, for an int that is too large; None for a
    schema without ints."""
    return _RangeChecks().check(schema, "")


class _RangeChecks:
    """Makes the checks of one parsed schema. A record may contain itself: then its check is looked up by name when it
    is called."""

    def __init__(self) -> None:
        self._named: dict[str, Check | None] = {}

    def check(self, schema: Any, place: str) -> Check | None:
        if isinstance(schema, list):
            return self._union(schema, place)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.check(kind, place)
        match kind:
            case "int":
                return lambda value: _check_int(value, place)
            case "record" | "error":
                return self._record(schema)
            case "array":
                return self._items(self.check(schema["items"], f"{place}[]"), lambda value: value)
            case "map":
                return self._items(self.check(schema["values"], f"{place}{{}}"), lambda value: value.values())
            case str() if kind in self._named:
                return self._later(kind)
        return None

    def _later(self, name: str) -> Check:
        def check(value: Any) -> None:
            found = self._named[name]
            if found is not None:
                found(value)

        return check

    def _record(self, schema: Any) -> Check | None:
        name = schema["name"]
        self._named[name] = None
        all_checks = [
            (field["name"], self.check(field["type"], f"{name}.{field['name']}"))
            for field in schema["fields"]
        ]
        checks = [(field, check) for field, check in all_checks if check is not None]
        if not checks:
            return None

        def check_fields(value: Any) -> None:
            if isinstance(value, dict):
                for field, check in checks:
                    found = value.get(field)
                    if found is not None:
                        check(found)

        self._named[name] = check_fields
        return check_fields

    def _items(self, check: Check | None, items: Callable[[Any], Any]) -> Check | None:
        if check is None:
            return None

        def check_items(value: Any) -> None:
            for each in items(value) if isinstance(value, dict | list | tuple) else ():
                check(each)

        return check_items

    def _union(self, branches: list[Any], place: str) -> Check | None:
        """Returns the check of a union. It checks unions of one type and null, and ints where no branch is wider."""
        others = [each for each in branches if each != "null"]
        if len(others) == 1:
            check = self.check(others[0], place)
            return None if check is None else lambda value: None if value is None else check(value)
        names = [each["type"] if isinstance(each, dict) else each for each in others]
        if "int" in names and not any(wide in names for wide in _WIDE):
            return lambda value: _check_int(value, place)
        return None


def _check_int(value: Any, place: str) -> None:
    if isinstance(value, int) and not -_INT_MAX - 1 <= value <= _INT_MAX:
        raise ValueDoesNotFit(f"{place or 'the value'} is {value}, and an int has 32 bits")
