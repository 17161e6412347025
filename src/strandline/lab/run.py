"""Runs a scenario and compares its outcome with the expected one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.simulated_stage import SimulatedStage
from strandline.lab.timeline import Timeline

OWN_CLIENT: Final = "strandline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    scenario: LabScenario
    outcome: Outcome
    timeline: Timeline
    facts: Mapping[str, str]
    figures: Mapping[str, float]  # in seconds
    client: str = ""  # the library of the clients on real processes; empty for a simulated run

    @property
    def differences(self) -> list[str]:
        """A line for each difference from the expected outcome, facts and bounds.

        The bounds of figures are those of the simulator: on real processes they also depend on the machine.
        """
        scenario, expected = self.scenario, self.scenario.expected
        if self.client:
            # Another library names errors in its own way.
            names = () if self.client == OWN_CLIENT else ("errors", "consumer_errors")
            found = {name: getattr(self.outcome, name) for name in (*names, *scenario.varies_for_real)}
            expected = replace(expected, **found)
        differences = self.outcome.differences(expected)
        for name in {**scenario.facts, **self.facts}:
            wanted, fact = scenario.facts.get(name, "nothing"), self.facts.get(name, "nothing")
            if wanted != fact:
                differences.append(f"{name}: {wanted} was expected, {fact} was found")
        for name in {} if self.client else {**scenario.bounds, **self.figures}:
            figure, bounds = self.figures.get(name), scenario.bounds.get(name)
            if figure is None or bounds is None or not bounds[0] <= figure <= bounds[1]:
                differences.append(f"{name}: {_bounds(bounds)} was expected, {_seconds(figure)} was found")
        return differences

    def as_json(self) -> dict[str, Any]:
        scenario = self.scenario
        return {
            "scenario": scenario.name,
            "title": scenario.title,
            "source": scenario.source,
            "claim": scenario.claim,
            "finding": scenario.finding,
            "settings": scenario.settings,
            "client": self.client or None,
            "as_expected": not self.differences,
            "differences": self.differences,
            "outcome": self.outcome.as_json(),
            "facts": dict(self.facts),
            "figures": dict(self.figures),
            "timeline": self.timeline.as_json(),
        }


def run_simulated(scenario: LabScenario) -> Run:
    """Raises lab.Stuck if the scenario waits for something that does not happen."""
    stage = SimulatedStage(scenario)
    with stage.world as world:
        lab = Lab(scenario, stage)
        outcome = world.run(lab.run())
    return Run(
        scenario=scenario, outcome=outcome, timeline=lab.timeline, facts=lab.facts, figures=lab.figures
    )


def _bounds(bounds: tuple[float, float] | None) -> str:
    return "no figure" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g} s"


def _seconds(figure: float | None) -> str:
    return "no figure" if figure is None else f"{figure:g} s"
