"""Prints options as statements or in brackets after a field, with the messages inside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from strandline.registry.formats.protobuf.elements import ProtoOption, ProtoPrimitive
from strandline.registry.formats.protobuf.type_scope import TypeScope

_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", "'": "\\'", '"': '\\"',
}  # fmt: skip


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.split("\n")[:-1]) if text.endswith("\n") else _lines(text)


def _lines(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.split("\n")) if text else ""


class OptionPrinter:
    def __init__(self, scope: TypeScope | None, without_extensions: bool) -> None:
        self._scope = scope
        self._without_extensions = without_extensions

    def statements(self, options: list[ProtoOption]) -> str:
        return "".join(f"option {self._option(each)};\n" for each in self._shown(options))

    def bracketed(self, options: list[ProtoOption]) -> str:
        shown = self._shown(options)
        return f" {self._list(shown)}" if shown else ""

    def _shown(self, options: list[ProtoOption]) -> list[ProtoOption]:
        shown = options
        if self._without_extensions:
            shown = [each for each in shown if not each.is_extension or each.name.startswith("confluent.")]
        if self._scope is not None:
            shown = self._merged(
                sorted((self._qualified(each) for each in shown), key=lambda each: each.name)
            )
        return shown

    def _qualified(self, option: ProtoOption) -> ProtoOption:
        assert self._scope is not None
        if not option.is_extension:
            return option
        full = self._scope.resolve_extension(option.name)
        if full is None:
            return option
        return _as_message(ProtoOption(full, option.kind, option.value, True))

    def _merged(self, options: Iterable[ProtoOption]) -> list[ProtoOption]:
        """Returns options in which one that is set field by field is a single message, unless it may be repeated."""
        assert self._scope is not None
        made: list[ProtoOption] = []
        for option in options:
            field = self._scope.extensions.get(option.name) if option.is_extension else None
            previous = made[-1] if made and made[-1].name == option.name else None
            if previous is None or field is None or field.label == "repeated":
                made.append(option)
            elif previous.kind == option.kind == "MAP":
                made[-1] = ProtoOption(option.name, "MAP", _merge(previous.value, option.value), True)
            else:
                made[-1] = option
        return made

    def _option(self, option: ProtoOption) -> str:
        name = f"({option.name})" if option.is_extension else option.name
        match option.kind:
            case "STRING":
                return f'{name} = "{escaped(str(option.value))}"'
            case "OPTION":
                return f"{name}.{self._option(option.value)}"
            case "MAP":
                return f"{name} = {{\n{self._message(option.value)}}}"
            case "LIST":
                return f"{name} = {self._list(option.value)}"
            case "NUMBER":
                return f"{name} = {self._number(str(option.value))}"
            case _:
                return f"{name} = {option.value}"

    def _list(self, values: list[Any]) -> str:
        if len(values) == 1:
            return f"[{self._value(values[0])}]"
        parts = [indented(self._value(each) + ("," if number < len(values) - 1 else ""))
                 for number, each in enumerate(values)]  # fmt: skip
        return f"[\n{''.join(parts)}]"

    def _message(self, message: dict[str, Any]) -> str:
        shown = message
        if self._scope is not None:
            kept = {self._key(key): value for key, value in message.items() if value != []}
            shown = {key: kept[key] for key in sorted(kept)}
        last = len(shown) - 1
        return "".join(
            indented(f"{key}: {self._value(value)}{',' if number < last else ''}")
            for number, (key, value) in enumerate(shown.items())
        )

    def _key(self, key: str) -> str:
        assert self._scope is not None
        if key.startswith("[") and key.endswith("]"):
            full = self._scope.resolve_extension(key[1:-1])
            return key if full is None else f"[{full}]"
        return key

    def _value(self, value: Any) -> str:
        if isinstance(value, ProtoOption):
            return self._option(value)
        if isinstance(value, ProtoPrimitive):
            return self._number(value.value) if value.kind == "NUMBER" else value.value
        if isinstance(value, dict):
            return f"{{\n{self._message(value)}}}"
        if isinstance(value, list):
            if self._scope is not None and len(value) == 1:
                return self._value(value[0])
            parts = [indented(self._value(each) + ("," if number < len(value) - 1 else ""))
                     for number, each in enumerate(value)]  # fmt: skip
            return f"[\n{''.join(parts)}]"
        return f'"{escaped(str(value))}"'

    def _number(self, text: str) -> str:
        """Returns a number; in the normal form it is written in one way: 1.50 as 1.5, 0x10 as 16."""
        if self._scope is None:
            return text
        try:
            if text.lstrip("+-")[:2].lower() == "0x":
                return str(int(text, 16))
            number = float(text) if any(each in text for each in ".eE") else int(text)
        except ValueError:
            return text
        if isinstance(number, float):
            return f"{number:.3f}".rstrip("0").rstrip(".")
        return str(number)


def _as_message(option: ProtoOption) -> ProtoOption:
    """Returns the option `(a).b = 1` in the form `(a) = { b: 1 }`."""
    if option.kind != "OPTION":
        return option
    inner = _as_message(option.value)
    is_primitive = inner.kind in ("BOOLEAN", "NUMBER", "ENUM")
    value = ProtoPrimitive(inner.kind, inner.value) if is_primitive else inner.value
    return ProtoOption(option.name, "MAP", {inner.name: value}, option.is_extension)


def _merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    made = dict(old)
    for key, value in new.items():
        known = made.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            made[key] = _merge(known, value)
        elif known is None:
            made[key] = value
        else:
            listed = known if isinstance(known, list) else [known]
            made[key] = [*listed, *(value if isinstance(value, list) else [value])]
    return made


def escaped(text: str) -> str:
    return "".join(_ESCAPES.get(each, each) for each in text)
