"""Which pattern when: what each pattern of several sites loses when a site is lost, and how long it waits.

    python -m bench.mirror_patterns [--workers 2]

Each row is played on the simulator (`mirror_sites`) with several seeds; the figures are of simulated time, so the
machine's speed is not in them. Results go to docs/benchmarks/mirror-patterns.md and mirror-patterns.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.mirror_sites import PATTERNS, RECORDS_A_SECOND, Figures, measured
from bench.results import DIRECTORY
from bench.tables import markdown, paragraph

ROUND_TRIPS_MS: Final = (2, 20, 100)
SEEDS: Final = (1, 2, 3)
PAGE: Final = DIRECTORY / "mirror-patterns.md"
FILE: Final = DIRECTORY / "mirror-patterns.json"
_COLUMNS: Final = {
    "acknowledged_ms": "a write waits, ms",
    "far_ms": "read at the other site after, ms",
    "write_wait_s": "site lost: writes go on after, s",
    "read_wait_s": "its group goes on after, s",
    "lost": "acknowledged and lost, records",
    "read_again": "read again, records",
}


class Case(NamedTuple):
    """A run of a pattern."""

    pattern: str
    round_trip_ms: int
    seed: int


CASES: Final = tuple(
    Case(pattern, each, seed) for pattern in PATTERNS for each in ROUND_TRIPS_MS for seed in SEEDS
)
Runs = dict[Case, Figures]


def play(case: Case) -> Figures:
    figures = measured(case.pattern, case.round_trip_ms, case.seed)
    return {name: round(value, 3) for name, value in figures.items()}


def page(runs: Runs) -> str:
    rows = []
    for pattern in PATTERNS:
        for round_trip_ms in ROUND_TRIPS_MS:
            found = [runs[Case(pattern, round_trip_ms, seed)] for seed in SEEDS]
            cells = [_cell([each[name] for each in found]) for name in _COLUMNS]
            rows.append([f"{pattern}, {round_trip_ms} ms", *cells])
    failover = median(each["failover_s"] for each in runs.values() if "failover_s" in each)
    parts = [
        "# What patterns of several sites lose, and how long they wait\n",
        paragraph(
            "Made by `python -m bench.mirror_patterns` in simulated time, on the real code of broker, client",
            f"and mirror, with {len(SEEDS)} seeds a row: medians, in brackets the lowest and highest. The",
            "milliseconds beside a pattern are the round trip between two sites; within a site it is a few",
            "milliseconds.",
        ),
        paragraph(
            f"In the east an application writes {RECORDS_A_SECOND} records a second with acks=all, and a group",
            "reads them and commits. Then the east is cut off from everything. The stretch cluster has a node",
            "in each of three sites, three replicas and min.insync.replicas=2. The others have a cluster in the",
            "east and one in the west, and a mirror in the west. All settings are the defaults.",
        ),
        markdown(["", *_COLUMNS.values()], rows),
        paragraph(
            "**The stretch cluster** loses nothing. It waits until another replica leads, and its group until",
            "the members that are gone have timed out (session.timeout.ms, 45 seconds).",
        ),
        paragraph(
            "**Mirrors** lose what was on its way, and `mirror verify` lists each of those records once the",
            "site is back: the runs check that. In active-passive, writes go on as soon as producers are",
            "pointed to the west; in active-active the west's own never stop. `mirror failover` was called at",
            f"the moment of the cut: add the time to decide. It takes {failover:.0f} seconds, in which it waits",
            "for the lost site to respond. The group reads again what it had committed after its last",
            "checkpoint, at most emit.checkpoints.interval.seconds of work (10 seconds), and skips nothing: the",
            "runs check that too.",
        ),
        "Every run is in [mirror-patterns.json](mirror-patterns.json).\n",
    ]
    return "\n".join(parts)


def _cell(values: list[float]) -> str:
    low, middle, high = (_short(each) for each in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def written(runs: Runs) -> str:
    lines = [json.dumps([*case, figures]) for case, figures in runs.items()]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def recorded(file: Path = FILE) -> Runs:
    """Returns the runs that the page was made of."""
    return {Case(*case): figures for *case, figures in json.loads(file.read_text())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page-only", action="store_true", help="make the page again from its results")
    options = parser.parse_args()
    if not options.page_only:
        runs: Runs = {}
        with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
            for case, figures in zip(CASES, pool.map(play, CASES), strict=True):
                runs[case] = figures
                print(case, figures, file=sys.stderr, flush=True)
        FILE.write_text(written(runs))
    PAGE.write_text(page(recorded()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
