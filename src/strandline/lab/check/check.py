"""Plays all failures that concern the settings, looks for changes that help, and goes through the checklist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strandline.lab.check.advice import Advice, advice_on
from strandline.lab.check.checklist import ChecklistPoint, checklist
from strandline.lab.check.failures import FAILURES, Failure
from strandline.lab.check.findings import HARMFUL, Finding, play
from strandline.lab.check.settings import PARTS, CheckedSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedFailure:
    failure: Failure
    findings: tuple[Finding, ...]
    advice: tuple[Advice, ...]

    @property
    def is_harmful(self) -> bool:
        """True if one failure alone makes data other than what was told."""
        return not self.failure.is_several and any(each.kind in HARMFUL for each in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "failure": self.failure.name,
            "title": self.failure.title,
            "is_several": self.failure.is_several,
            "findings": [each.as_json() for each in self.findings],
            "advice": [each.as_json() for each in self.advice],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    settings: CheckedSettings
    played: tuple[PlayedFailure, ...]
    checklist: tuple[ChecklistPoint, ...]

    @property
    def is_harmful(self) -> bool:
        return any(each.is_harmful for each in self.played)

    def as_json(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "settings": {part: dict(settings.part(part)) for part in PARTS},
            "notes": list(settings.notes),
            "survives_single_failures": not self.is_harmful,
            "failures": [each.as_json() for each in self.played],
            "checklist": [each.as_json() for each in self.checklist],
        }


def check(
    settings: CheckedSettings, on_played: Callable[[PlayedFailure], None] = lambda played: None
) -> CheckReport:
    """Plays them one after the other; `on_played` is called with each that is done."""
    known: dict[tuple[str, str], tuple[Finding, ...]] = {}

    def played_once(failure: Failure, with_settings: CheckedSettings) -> tuple[Finding, ...]:
        place = failure.name, repr(with_settings)
        if place not in known:
            known[place] = play(failure, with_settings)
        return known[place]

    played = []
    for failure in FAILURES:
        if failure.applies(settings):
            found = played_once(failure, settings)
            advice = advice_on(failure, found, settings, played_once)
            played.append(PlayedFailure(failure=failure, findings=found, advice=advice))
            on_played(played[-1])
    of_consumers = {each.failure.name: each.findings for each in played if each.failure.is_of_consumer}
    return CheckReport(settings=settings, played=tuple(played), checklist=checklist(settings, of_consumers))
