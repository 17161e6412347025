"""docs/benchmarks/groups.md, made from the results of a run."""

from __future__ import annotations

from typing import Any

from bench.peers import KAFKA, STRANDLINE
from bench.results import Results, Spread

_HOW = """Each scenario runs on both brokers one right after the other, whoever is not measured paused. Medians, in
brackets the lowest and highest round. Speed is the median of
the rounds' ratios, above 1 where Strandline is quicker; CPU is what the broker's process
used in the scenario, as a share of Kafka's. A rate has a fixed duration, so there CPU has to be read with the speed."""
_SETTINGS = """Both brokers have `group.initial.rebalance.delay.ms=0`, ten partitions of `__consumer_offsets` and one
node; Kafka runs with the heap and options of its own scripts, after a warm-up, and with
`group.consumer.assignment.interval.ms=0`: its default would make consumer groups wait up to a second before they
assign, which Strandline does not do. Members are connections of one process that speak the protocol on raw sockets;
where it says so they are librdkafka's, whose ten members need two seconds in some rounds and a third of one in others,
with either broker: why was not looked into. A Strandline node is one thread; Kafka uses more than one core where many
connections commit at once, as its CPU seconds in groups.json show."""


def render(results: Results) -> str:
    run, facts = results.run, results.run["machine"]
    rows, slower, faster = [], [], []
    for name, scenario in results.scenarios.items():
        figure = scenario["figure"]
        ours, theirs = results.spread(name, STRANDLINE, figure), results.spread(name, KAFKA, figure)
        ratio = results.ratio(name, figure, STRANDLINE, KAFKA)
        assert ours is not None
        assert theirs is not None
        assert ratio is not None
        speed = ratio.median if scenario["more_is_better"] else 1 / ratio.median
        cpu = results.ratio(name, "broker_cpu_s", STRANDLINE, KAFKA)
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
            "# Groups beside Apache Kafka",
            "",
            f"Made by `python -m bench.groups` on {run['date']}, {run['rounds']} rounds.",
            _HOW,
            "",
            "| | Strandline | Apache Kafka | speed | CPU |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            verdict,
            "",
            _SETTINGS,
            "",
            _machine(facts, run["revision"]),
            f"Other programs used up to {_others(results):.1f} cores during a step.",
            "Every sample is in [groups.json](groups.json).",
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

    unit = " ms" if figure == "ms" else "/s"
    return f"{text(spread.median)}{unit} ({text(spread.low)}–{text(spread.high)})"
