"""Makes the page of a benchmark of `bench.pairs` from the results of a run."""

from __future__ import annotations

from typing import Any

from bench.peers import KAFKA, STRANDLINE
from bench.results import Results, Spread

_HOW = """Each scenario runs on both brokers one right after the other, and the other broker is paused. Medians, in
brackets the lowest and highest round. Speed is the median of
the rounds' ratios, above 1 where Strandline is quicker; CPU is what the broker's process
used in the scenario, as a share of Kafka's. A rate has a fixed duration, so there CPU has to be read with the speed."""


# What a figure's name stands for.
UNITS = {"ms": " ms", "p99_ms": " ms", "per_s": "/s", "bytes": " bytes"}


def render(results: Results, *, name: str, title: str, about: str) -> str:
    run, facts = results.run, results.run["machine"]
    rows, slower, faster = [], [], []
    for key, scenario in results.scenarios.items():
        figure = scenario["figure"]
        ours, theirs = results.spread(key, STRANDLINE, figure), results.spread(key, KAFKA, figure)
        ratio = results.ratio(key, figure, STRANDLINE, KAFKA)
        assert ours is not None
        assert theirs is not None
        assert ratio is not None
        speed = ratio.median if scenario["more_is_better"] else 1 / ratio.median
        cpu = results.ratio(key, "broker_cpu_s", STRANDLINE, KAFKA)
        (faster if speed >= 1 else slower).append(f"{scenario['what']} ({speed:.2f}×)")
        rows.append(
            f"| {scenario['what']} | {_shown(ours, figure)} | {_shown(theirs, figure)} | {speed:.2f}× | "
            f"{'' if cpu is None else f'{cpu.median:.2f}×'} |"
        )
    verdict = (
        f"Slower than Kafka: {'; '.join(slower)}."
        if slower
        else "Nothing measured here is slower than Kafka."
    )
    return "\n".join(
        [
            f"# {title}",
            "",
            f"Made by `python -m bench.{name}` on {run['date']}, {run['rounds']} rounds.",
            _HOW,
            "",
            "| | Strandline | Apache Kafka | speed | CPU |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            verdict,
            "",
            about,
            "",
            _machine(facts, run["revision"]),
            f"Other programs used up to {_others(results):.1f} cores during a step.",
            f"Every sample is in [{name}.json]({name}.json).",
            "",
        ]
    )


def _others(results: Results) -> float:
    return max(sample.figures["others_cores"] for sample in results.samples)


def _machine(facts: dict[str, Any], revision: str) -> str:
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
        f"Python {facts['python']}, {facts['java']}, Kafka {facts['kafka']}, librdkafka {facts['librdkafka']}. "
        f"Revision {revision}."
    )


def _shown(spread: Spread, figure: str) -> str:
    def text(value: float) -> str:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

    unit = UNITS[figure]
    return f"{text(spread.median)}{unit} ({text(spread.low)}–{text(spread.high)})"
