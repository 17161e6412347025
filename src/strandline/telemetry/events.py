"""The events that a node logs: one line each, for people or, as JSON, for machines.

Each part of a node has a logger of its own, whose level can be changed while the node runs; a logger without a level
has that of `root`. Events that clients cause are limited in number: events that were left out are counted, and the next
line has their number.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

LEVELS: Final = ("debug", "info", "warn", "error")
ROOT: Final = "root"
DEBUG: Final = 0
# The limit for one text of a limited logger: so many lines in so many milliseconds.
LIMITED_LINES: Final = 50
LIMITED_MS: Final = 10_000


class _Sink:
    """The output of a node's log: its destination and its format."""

    __slots__ = ("_as_json", "_node", "_write", "now_ms")

    def __init__(
        self, write: Callable[[str], None], now_ms: Callable[[], int], node: int, as_json: bool
    ) -> None:
        self._write = write
        self.now_ms = now_ms
        self._node = node
        self._as_json = as_json

    def say(self, now_ms: int, level: int, logger: str, text: str, fields: dict[str, object]) -> None:
        if self._as_json:
            record = {
                "time_ms": now_ms,
                "level": LEVELS[level],
                "node": self._node,
                "logger": logger,
                "event": text,
                **fields,
            }
            self._write(json.dumps(record, default=str))
            return
        extra = "".join(f" {key}={_readable(value)}" for key, value in fields.items())
        self._write(f"{_time_text(now_ms)} {LEVELS[level]:5} [{self._node}] {text}{extra}")


class Events:
    """The logger of a part of a node. `named` returns loggers of other parts, which share its output."""

    __slots__ = ("_is_limited", "_loggers", "_lowest", "_own_level", "_said", "_sink", "is_debug", "name")

    def __init__(
        self,
        write: Callable[[str], None],
        now_ms: Callable[[], int],
        *,
        node: int = 0,
        as_json: bool = False,
        level: str = "info",
    ) -> None:
        """`write` gets a whole line, `now_ms` returns its time."""
        self._begin(ROOT, _Sink(write, now_ms, node, as_json), {}, is_limited=False)
        self._own_level: str | None = level
        self._show_from(LEVELS.index(level))

    def _begin(self, name: str, sink: _Sink, loggers: dict[str, Events], *, is_limited: bool) -> None:
        self.name = name
        self._sink = sink
        self._loggers = loggers
        self._loggers[name] = self
        self._is_limited = is_limited
        self._said: dict[str, list[int]] = {}  # by text: the begin of its period, and the number of its lines

    def named(self, name: str, *, is_limited: bool = False) -> Events:
        """Returns the logger of this name; with `is_limited` its events are limited in number, because clients cause
        them."""
        known = self._loggers.get(name)
        if known is not None:
            return known
        made = object.__new__(Events)
        made._begin(name, self._sink, self._loggers, is_limited=is_limited)
        made._own_level = None
        made._show_from(self._loggers[ROOT]._lowest)
        return made

    # Levels

    @property
    def levels(self) -> dict[str, str]:
        """Returns the level of every logger, by name."""
        return {name: LEVELS[logger._lowest] for name, logger in sorted(self._loggers.items())}

    def set_level(self, name: str, level: str | None) -> None:
        """Sets the level of a logger; None gives it root's level again. Raises KeyError if there is no such logger."""
        logger = self._loggers[name]
        assert level is not None or logger is not self._loggers[ROOT], "the root logger must have a level"
        logger._own_level = level
        root = self._loggers[ROOT]
        for each in self._loggers.values():
            each._show_from(LEVELS.index(each._own_level or root._own_level or "info"))

    def _show_from(self, lowest: int) -> None:
        self._lowest = lowest
        self.is_debug = lowest == DEBUG  # events of each request are only built at this level

    # Events

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
        now_ms = self._sink.now_ms()
        if self._is_limited and level != DEBUG:
            left_out = self._left_out(text, now_ms)
            if left_out is None:
                return
            if left_out:
                fields = {**fields, "and_left_out": left_out}
        self._sink.say(now_ms, level, self.name, text, fields)

    def _left_out(self, text: str, now_ms: int) -> int | None:
        """Returns how many lines of this text were left out before this one; None if this one is left out too."""
        said = self._said.setdefault(text, [now_ms, 0])
        begun_ms, count = said
        if now_ms - begun_ms >= LIMITED_MS or now_ms < begun_ms:
            said[:] = [now_ms, 1]
            return max(count - LIMITED_LINES, 0)
        said[1] = count + 1
        return 0 if count < LIMITED_LINES else None


def _time_text(now_ms: int) -> str:
    seconds, ms = divmod(now_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def _readable(value: object) -> str:
    text = str(value)
    return json.dumps(text) if not text or any(c.isspace() or c in '"=' for c in text) else text
