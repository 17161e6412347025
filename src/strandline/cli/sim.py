"""`strandline sim`: simulates a whole cluster with clients and disks in one thread, from a seed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from typing import TYPE_CHECKING

from strandline.cli.arguments import seconds
from strandline.cli.output.document import add_json

if TYPE_CHECKING:
    from strandline.sim.search.run import RunResult
    from strandline.sim.search.scenario import Scenario

# A search tries the scenarios of each speed with one seed out of this number.
_EVERY = {"fast": 1, "slow": 3, "rare": 5}
_RUN_SHAPE = {
    "scenario": "text",
    "seed": "number",
    "verdict": "text",
    "message": "text",
    "trace_hash": "text",
    "virtual_s": "number",
    "cpu_s": "number",
    "acknowledged": "number",
    "faults": {"<fault>": "number"},
    "events": [{"<field>": "any"}],
}


def add_arguments(sim: argparse.ArgumentParser) -> None:
    actions = sim.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list the scenarios")
    add_json(listed, {"name": "text", "speed": "text", "workloads": ["text"], "about": "text"}, lines=True)
    run = actions.add_parser(
        "run",
        help="search for violations with many seeds",
        description="Runs scenarios with one seed after another and checks each run. The exit code is 1 if a run "
        "failed; `sim replay` repeats it.",
    )
    run.add_argument(
        "scenario",
        nargs="*",
        metavar="SCENARIO",
        help="names of scenarios or .toml files (default: all scenarios)",
    )
    run.add_argument(
        "--seeds", type=_count, default=100, metavar="COUNT", help="the number of seeds (default: 100)"
    )
    run.add_argument("--first", type=_seed, default=0, metavar="SEED", help="the first seed (default: 0)")
    run.add_argument(
        "--seconds", type=seconds, metavar="SECONDS", help="begin no further run after this time"
    )
    run.add_argument(
        "--workers", type=_count, default=1, metavar="N", help="the number of processes (default: 1)"
    )
    add_json(run, _RUN_SHAPE, lines=True)
    replay = actions.add_parser(
        "replay",
        help="run one seed again, and print what happened",
        description="Runs a scenario with one seed and prints what happened. Without --scenario it runs those that "
        "`sim run` tries with this seed, up to the first that fails.",
    )
    replay.add_argument("seed", type=_seed, metavar="SEED")
    replay.add_argument("--scenario", metavar="SCENARIO", help="the name of a scenario, or a .toml file")
    replay.add_argument(
        "--shrink", action="store_true", help="find a smaller set of faults that fails in the same way"
    )
    replay.add_argument("--faults", metavar="FILE", help="read the faults from a file that --shrink printed")
    add_json(replay, {**_RUN_SHAPE, "enough?": [{"<field>": "any"}]})


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number") from None


def _count(text: str) -> int:
    count = _seed(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{count} is too few: at least 1")
    return count


def call(options: argparse.Namespace) -> int:
    from strandline.config import InvalidConfig
    from strandline.sim.search.scenario import InvalidScenario, load, shipped

    try:
        if options.action == "list":
            for plan in shipped().values():
                print(_as_json(plan) if options.json else _as_line(plan))
            return 0
        if options.action == "run":
            plans = [load(name) for name in options.scenario] or list(shipped().values())
            return _run(plans, options)
        if options.scenario is not None:
            return _replay(load(options.scenario), options)
        if options.faults:
            raise InvalidScenario("--faults needs --scenario, the scenario of these faults")
        tried = _tried_with(options.seed, list(shipped().values()))
        return next((1 for plan in tried if _replay(plan, options)), 0)
    except (InvalidScenario, InvalidConfig) as error:
        print(f"strandline: {error}", file=sys.stderr)
        return 2


def _as_line(plan: Scenario) -> str:
    return f"{plan.name:<14} {plan.speed:<5} {', '.join(plan.workloads):<26} {plan.about}"


def _as_json(plan: Scenario) -> str:
    return json.dumps(
        {"name": plan.name, "speed": plan.speed, "workloads": plan.workloads, "about": plan.about}
    )


def _jobs(plans: list[Scenario], options: argparse.Namespace) -> Iterator[tuple[Scenario, int]]:
    """Yields the runs. Scenarios that were named run with every seed; without names, slow scenarios run less often."""
    deadline = time.monotonic() + options.seconds if options.seconds is not None else float("inf")
    for seed in range(options.first, options.first + options.seeds):
        for plan in plans if options.scenario else _tried_with(seed, plans):
            if time.monotonic() > deadline:
                return
            yield plan, seed


def _tried_with(seed: int, plans: list[Scenario]) -> list[Scenario]:
    return [plan for number, plan in enumerate(plans) if not (seed + number) % _EVERY[plan.speed]]


def _one(job: tuple[Scenario, int]) -> RunResult:
    from strandline.sim.search.run import run

    return run(*job)


def _outcomes(plans: list[Scenario], options: argparse.Namespace) -> Iterator[RunResult]:
    jobs = _jobs(plans, options)
    if options.workers == 1:
        yield from map(_one, jobs)
        return
    # A few at a time, so that the time limit holds.
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        while batch := [job for _, job in zip(range(options.workers * 2), jobs, strict=False)]:
            yield from pool.map(_one, batch)


def _run(plans: list[Scenario], options: argparse.Namespace) -> int:
    from strandline.sim.search.run import as_json

    begun_s = time.monotonic()
    count, virtual_s, cpu_s, acknowledged = 0, 0.0, 0.0, 0
    faults: Counter[str] = Counter()
    times: dict[str, tuple[float, float]] = {}  # of each scenario: virtual seconds, and seconds of CPU time
    failed: list[RunResult] = []
    for outcome in _outcomes(plans, options):
        count += 1
        virtual_s += outcome.virtual_s
        cpu_s += outcome.cpu_s
        acknowledged += outcome.acknowledged
        before = times.get(outcome.scenario, (0.0, 0.0))
        times[outcome.scenario] = (before[0] + outcome.virtual_s, before[1] + outcome.cpu_s)
        faults.update(outcome.fault_counts)
        if options.json:
            print(json.dumps(as_json(outcome)), flush=True)
        elif not outcome.is_ok:
            print(
                f"\nFAILED {outcome.scenario}, seed {outcome.seed}: {outcome.message.splitlines()[0]}",
                flush=True,
            )
            scenario = outcome.scenario_path or outcome.scenario
            print(f"  strandline sim replay {outcome.seed} --scenario {scenario} --shrink", flush=True)
        elif sys.stderr.isatty():
            print(
                f"\r{count} runs, {virtual_s / 3600:.2f} simulated hours", end="", file=sys.stderr, flush=True
            )
        if not outcome.is_ok:
            failed.append(outcome)
    if not options.json:
        print(
            f"\n{count} runs, {len(failed)} failed; {virtual_s / 3600:.2f} simulated hours in "
            f"{time.monotonic() - begun_s:.0f} s ({virtual_s / max(cpu_s, 0.001):.1f} times real time on a core); "
            f"{acknowledged:,} acknowledged writes; faults: "
            + (", ".join(f"{kind} {number}" for kind, number in sorted(faults.items())) or "none")
        )
        if len(times) > 1:
            speeds = (
                f"{name} {virtual / max(cpu, 0.001):.1f}" for name, (virtual, cpu) in sorted(times.items())
            )
            print(f"times real time: {', '.join(speeds)}")
    return 1 if failed or not count else 0


def _replay(plan: Scenario, options: argparse.Namespace) -> int:
    from strandline.sim.search.faults import FaultEvent
    from strandline.sim.search.run import as_json, run
    from strandline.sim.search.scenario import load_events
    from strandline.sim.search.shrinking import shrink

    given = load_events(options.faults, plan) if options.faults else None
    outcome = run(plan, options.seed, given)
    found = as_json(outcome)
    if not options.json:
        # Lines that are not faults are comments, so the whole output can be read again with --faults.
        print(f"# {outcome.scenario}, seed {outcome.seed}: {outcome.verdict}")
        print(
            f"# trace {outcome.trace_hash}, {outcome.virtual_s:.1f} virtual seconds in {outcome.cpu_s:.1f} s of CPU"
        )
        for line in outcome.message.splitlines():
            print(f"# {line}")
        sys.stdout.flush()
    events = outcome.events
    if options.shrink and not outcome.is_ok:
        events = shrink(events, lambda fewer: run(plan, options.seed, fewer).verdict == outcome.verdict)
        found["enough"] = [asdict(event) for event in events]
        if not options.json:
            print(f"# {len(events)} of {len(outcome.events)} faults are enough for {outcome.verdict}:")
    if options.json:
        print(json.dumps(found))
    else:
        print("\n".join(map(FaultEvent.as_toml, events)))
    return 0 if outcome.is_ok else 1
