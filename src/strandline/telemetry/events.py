"""The events that a node logs: one line each, for people or, as JSON, for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

LEVELS: Final = ("debug", "info", "warn", "error")


class Events:
    """Writes events through `write`, which takes a whole line; `now_ms` stamps them."""

    __slots__ = ("_as_json", "_lowest", "_node", "_now_ms", "_write")

    def __init__(
        self,
        write: Callable[[str], None],
        now_ms: Callable[[], int],
        *,
        node: int = 0,
        as_json: bool = False,
        level: str = "info",
    ) -> None:
        self._write = write
        self._now_ms = now_ms
        self._node = node
        self._as_json = as_json
        self._lowest = LEVELS.index(level)

    def debug(self, text: str, **fields: object) -> None:
        self._say(0, text, fields)

    def info(self, text: str, **fields: object) -> None:
        self._say(1, text, fields)

    def warn(self, text: str, **fields: object) -> None:
        self._say(2, text, fields)

    def error(self, text: str, **fields: object) -> None:
        self._say(3, text, fields)

    def _say(self, level: int, text: str, fields: dict[str, object]) -> None:
        if level < self._lowest:
            return
        now = self._now_ms()
        if self._as_json:
            record = {"time_ms": now, "level": LEVELS[level], "node": self._node, "event": text, **fields}
            self._write(json.dumps(record, default=str))
            return
        extra = "".join(f" {key}={_readable(value)}" for key, value in fields.items())
        self._write(f"{_clock_text(now)} {LEVELS[level]:5} {text}{extra}")


def _clock_text(now_ms: int) -> str:
    """Time of day in UTC; the date is on every file and journal already."""
    seconds, ms = divmod(now_ms, 1000)
    minutes, second = divmod(seconds % 86400, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}.{ms:03d}Z"


def _readable(value: object) -> str:
    text = str(value)
    return json.dumps(text) if not text or any(c.isspace() or c in '"=' for c in text) else text
