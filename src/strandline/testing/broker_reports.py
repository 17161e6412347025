"""Sections in reports of tests: the logs of brokers in a failing test, and brokers that died.

Only lines that were logged since the test began are shown, and of many only the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from strandline.testing.process import BrokerProcess

LINES_MAX: Final = 60
BYTES_MAX: Final = 12_000
DEATHS: Final = "strandline: a broker died"
_SENT_BY_TESTS: Final = (9, 15)  # SIGKILL, SIGTERM
_STOPPED: Final = "strandline: a shared broker is not running"


class BrokerReports:
    """Follows brokers through the tests of a session."""

    def __init__(self) -> None:
        self._log_sizes: dict[int, int] = {}  # when the test began, by id of the broker
        # Brokers that died, with the test that noticed it, by id of the broker.
        self._noticed_in: dict[int, tuple[BrokerProcess, str]] = {}
        self._shared: dict[str, BrokerProcess] = {}  # by fixture
        self._stopped_in: dict[str, str] = {}  # fixtures whose broker a test has stopped, with that test

    def share(self, fixture: str, broker: BrokerProcess) -> None:
        """Follows a broker that several tests use: if one of them stops it, reports of the others say so."""
        self._shared[fixture] = broker
        self._stopped_in.pop(fixture, None)

    def unshare(self, fixture: str) -> None:
        self._shared.pop(fixture, None)

    def begin(self, brokers: Iterable[BrokerProcess]) -> None:
        """Notes where logs end when a test begins."""
        self._log_sizes = {id(broker): _size(broker) for broker in brokers}

    def add_to(self, report: pytest.TestReport, brokers: Iterable[BrokerProcess]) -> None:
        """Adds sections to the report of a test: logs if it failed, and the brokers that died."""
        for broker in list(brokers):
            is_new = broker.exit_status is not None and id(broker) not in self._noticed_in
            if is_new:
                self._noticed_in[id(broker)] = broker, report.nodeid
            if is_new or (report.failed and broker.exit_status is not None):
                noticed_in = self._noticed_in[id(broker)][1]
                report.sections.append((DEATHS, f"{broker.death}\nnoticed in {noticed_in}"))
            elif report.failed and (text := self._new_log(broker)):
                report.sections.append((f"log of {broker.label}", text))
        self._add_stopped(report)

    def _add_stopped(self, report: pytest.TestReport) -> None:
        for fixture, broker in self._shared.items():
            if broker.is_running or broker.exit_status is not None:
                self._stopped_in.pop(fixture, None)
                continue
            by = self._stopped_in.setdefault(fixture, report.nodeid)
            if report.failed:
                text = f"{by} has stopped or killed the broker of {fixture}, and did not start it again"
                report.sections.append((_STOPPED, text))

    def _new_log(self, broker: BrokerProcess) -> str:
        """Returns the last lines that were logged since the test began."""
        begin, end = self._log_sizes.get(id(broker), 0), _size(broker)
        if end <= begin:
            return ""
        start = max(begin, end - BYTES_MAX)
        with broker.log_path.open("rb") as file:
            file.seek(start)
            text = file.read(end - start).decode(errors="replace")
        lines = text.splitlines()
        if start > begin:
            lines = lines[1:]  # the first one is cut off
        if start == begin and len(lines) <= LINES_MAX:
            return "\n".join(lines)
        return "\n".join(["… (earlier lines are left out)", *lines[-LINES_MAX:]])


def _size(broker: BrokerProcess) -> int:
    try:
        return broker.log_path.stat().st_size
    except FileNotFoundError:
        return 0


def raise_if_died(brokers: Iterable[BrokerProcess], *, also_killed: bool) -> None:
    """Raises BrokerDied, at the end of a fixture, if one of its brokers has ended by itself.

    Without `also_killed` a broker that was ended by a signal is passed over: the test may have sent it.
    """
    from strandline.testing.process import BrokerDied

    deaths = [
        broker.death
        for broker in brokers
        if broker.exit_status is not None
        and (also_killed or (broker.exit_status != 0 and -broker.exit_status not in _SENT_BY_TESTS))
    ]
    if deaths:
        raise BrokerDied("\n".join(deaths))


def death_lines(reports: Iterable[object]) -> list[str]:
    """Returns a line for each death in the reports: how the broker ended, and the test that noticed it."""
    found: dict[str, None] = {}
    for report in reports:
        for title, text in getattr(report, "sections", ()):
            if title == DEATHS:
                first = text.partition(";")[0].split(", though")[0]
                found[f"{first}: {text.rpartition(chr(10))[2]}"] = None
    return list(found)
