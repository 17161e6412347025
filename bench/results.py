"""The results of a run, in the form of docs/benchmarks/broker.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

DIRECTORY = Path(__file__).parents[1] / "docs" / "benchmarks"
FILE_NAME = "broker.json"
_SIGNIFICANT_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The figures of one peer in one scenario and round."""

    scenario: str
    peer: str
    round: int
    figures: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median, lowest and highest figure of several rounds."""

    median: float
    low: float
    high: float


@dataclass(slots=True, kw_only=True)
class Results:
    """All results: `run` describes the run, `scenarios` has each scenario by id, `latencies_us` every latency by
    peer."""

    run: dict[str, Any]
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    latencies_us: dict[str, list[int]] = field(default_factory=dict)

    def add(self, scenario: str, peer: str, round_number: int, figures: dict[str, float]) -> None:
        rounded = {key: float(f"{value:.{_SIGNIFICANT_DIGITS}g}") for key, value in figures.items()}
        self.samples.append(Sample(scenario=scenario, peer=peer, round=round_number, figures=rounded))

    def by_round(self, scenario: str, peer: str, figure: str) -> dict[int, float]:
        return {
            sample.round: sample.figures[figure]
            for sample in self.samples
            if sample.scenario == scenario and sample.peer == peer and figure in sample.figures
        }

    def spread(self, scenario: str, peer: str, figure: str) -> Spread | None:
        return _spread(list(self.by_round(scenario, peer, figure).values()))

    def ratio(self, scenario: str, figure: str, peer: str, to: str) -> Spread | None:
        """Returns the ratios of the two peers' figures in the same round, which had the same noise."""
        ours, theirs = self.by_round(scenario, peer, figure), self.by_round(scenario, to, figure)
        return _spread([ours[n] / theirs[n] for n in ours if theirs.get(n)])

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A line for each sample: readable, and small enough to be looked at as a diff.
        samples = ",\n".join("  " + json.dumps(asdict(sample)) for sample in self.samples)
        latencies = ",\n".join(
            f"  {json.dumps(peer)}: {json.dumps(values, separators=(',', ':'))}"
            for peer, values in self.latencies_us.items()
        )
        path.write_text(
            f'{{\n"run": {json.dumps(self.run, indent=1)},\n'
            f'"scenarios": {json.dumps(self.scenarios, indent=1)},\n'
            f'"samples": [\n{samples}\n],\n"latencies_us": {{\n{latencies}\n}}\n}}\n'
        )

    @classmethod
    def read(cls, path: Path) -> Results:
        stored = json.loads(path.read_text())
        return cls(
            run=stored["run"],
            scenarios=stored["scenarios"],
            samples=[Sample(**sample) for sample in stored["samples"]],
            latencies_us=stored["latencies_us"],
        )


def _spread(values: list[float]) -> Spread | None:
    return Spread(median=median(values), low=min(values), high=max(values)) if values else None
