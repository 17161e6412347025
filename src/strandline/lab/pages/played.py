"""Results of plays, as plain values that a page keeps, so that it can be made again from itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from strandline.lab.check.failures import FAILURES, Failure
from strandline.lab.check.findings import DUPLICATES, LOSES, REFUSES, play_through
from strandline.lab.check.settings import CheckedSettings
from strandline.lab.pages.experiments import EXPERIMENTS

PLAYS: Final = {each.name: each for each in (*FAILURES, *EXPERIMENTS)}
# A result: {"findings": [[kind, text], …], "facts": {…}, "figures": {…}}
Result = Mapping[str, Any]
# Plays many at once: names of plays with their settings.
PlayAll = Callable[[list[tuple[str, CheckedSettings]]], Iterable[Result]]


def play_one(name: str, settings: CheckedSettings) -> Result:
    found, run = play_through(PLAYS[name], settings)
    return {
        "findings": [[each.kind, str(each)] for each in found],
        "facts": {} if run is None else dict(run.facts),
        "figures": {} if run is None else {key: run.figures[key] for key in run.figures if key in PLAYS},
    }


class RowResults:
    """The results with one set of settings, by the names of plays."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results = results

    def kinds(self, name: str) -> set[str]:
        return {kind for kind, _ in self._findings(name)}

    def texts(self, name: str) -> list[str]:
        return [text for _, text in self._findings(name)]

    def _findings(self, name: str) -> list[tuple[str, str]]:
        return [(kind, text) for kind, text in self._results.get(name, {"findings": []})["findings"]]

    def was_played(self, name: str) -> bool:
        return name in self._results

    def _having(self, kind: str, *, is_several: bool) -> list[Failure]:
        return [
            PLAYS[name]
            for name in self._results
            if kind in self.kinds(name) and PLAYS[name] in FAILURES and PLAYS[name].is_several == is_several
        ]

    @property
    def losing(self) -> list[Failure]:
        """Single failures that lose acknowledged records."""
        return self._having(LOSES, is_several=False)

    @property
    def losing_together(self) -> list[Failure]:
        """Combinations of failures that lose acknowledged records."""
        return self._having(LOSES, is_several=True)

    @property
    def duplicating(self) -> list[Failure]:
        return self._having(DUPLICATES, is_several=False)

    @property
    def refusing(self) -> list[Failure]:
        return self._having(REFUSES, is_several=False)

    @property
    def copies(self) -> int:
        return int(self._results["copies"]["facts"]["copies"])

    @property
    def latency_ms(self) -> float:
        return float(self._results["latency"]["figures"]["latency"]) * 1000
