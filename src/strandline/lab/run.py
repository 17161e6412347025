"""Runs a scenario and compares its outcome with the expected one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.simulated_stage import SimulatedStage
from strandline.lab.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    scenario: LabScenario
    outcome: Outcome
    timeline: Timeline

    @property
    def differences(self) -> list[str]:
        return self.outcome.differences(self.scenario.expected)

    def as_json(self) -> dict[str, Any]:
        scenario = self.scenario
        return {
            "scenario": scenario.name,
            "title": scenario.title,
            "source": scenario.source,
            "claim": scenario.claim,
            "finding": scenario.finding,
            "settings": scenario.settings,
            "as_expected": not self.differences,
            "differences": self.differences,
            "outcome": self.outcome.as_json(),
            "timeline": self.timeline.as_json(),
        }


def run_simulated(scenario: LabScenario) -> Run:
    """Raises lab.Stuck if the scenario waits for something that does not happen."""
    stage = SimulatedStage(scenario)
    with stage.world as world:
        lab = Lab(scenario, stage)
        outcome = world.run(lab.run())
    return Run(scenario=scenario, outcome=outcome, timeline=lab.timeline)
