"""Lines of the log: how they look, which are shown, and how many."""

from __future__ import annotations

import json

import pytest

from strandline.telemetry.events import LIMITED_LINES, LIMITED_MS, Events
from strandline.telemetry.loggers import CONNECTIONS, GROUPS, make_loggers


class Log:
    def __init__(self, **options: object) -> None:
        self.lines: list[str] = []
        self.now_ms = 1_700_000_000_123
        self.events = Events(self.lines.append, lambda: self.now_ms, node=7, **options)  # type: ignore[arg-type]
        make_loggers(self.events)


def test_a_line_has_date_level_node_and_fields() -> None:
    log = Log()
    log.events.info("topic created", topic="a b", partitions=3)
    assert log.lines == ['2023-11-14T22:13:20.123Z info  [7] topic created topic="a b" partitions=3']


def test_machines_get_json_with_the_logger() -> None:
    log = Log(as_json=True)
    log.events.named(GROUPS).warn("gone", group="g")
    assert json.loads(log.lines[0]) == {
        "time_ms": log.now_ms,
        "level": "warn",
        "node": 7,
        "logger": GROUPS,
        "event": "gone",
        "group": "g",
    }


def test_the_level_of_one_logger_is_its_own_until_it_is_taken_back() -> None:
    log = Log()
    groups = log.events.named(GROUPS)
    groups.debug("not yet")
    log.events.set_level(GROUPS, "debug")
    assert groups.is_debug
    groups.debug("shown")
    log.events.debug("not of root")
    log.events.set_level(GROUPS, None)
    groups.debug("not any more")
    log.events.set_level("root", "error")
    groups.warn("nor this")
    assert [line.rsplit("] ")[1] for line in log.lines] == ["shown"]
    assert log.events.levels[GROUPS] == "error"


def test_an_unknown_logger_has_no_level() -> None:
    with pytest.raises(KeyError):
        Log().events.set_level("strandline.nothing", "debug")


def test_events_that_clients_cause_are_limited_and_counted() -> None:
    log = Log()
    connections = log.events.named(CONNECTIONS)
    for _ in range(LIMITED_LINES + 30):
        connections.warn("connection closed", why="x")
    connections.warn("another text")
    assert len(log.lines) == LIMITED_LINES + 1
    log.now_ms += LIMITED_MS
    connections.warn("connection closed", why="x")
    assert log.lines[-1].endswith("connection closed why=x and_left_out=30")
    for _ in range(LIMITED_LINES + 30):
        log.events.warn("repaired")
    assert len(log.lines) == 2 * LIMITED_LINES + 32, "what a node does itself is told in full"
