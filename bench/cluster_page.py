"""Makes docs/benchmarks/cluster.md from the results of a run."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import OTHERS_CORES_MAX
from bench.peers import KAFKA, STRANDLINE
from bench.results import Results, Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    what: str
    scenario: str
    figure: str
    unit: str
    aim: float | None = None
    more_is_better: bool = False


def _failover(scenario: str, what: str) -> tuple[Row, ...]:
    return (
        Row(what=f"{what}: new leader in metadata", scenario=scenario, figure="elected_ms", unit="ms"),
        Row(what="… known on all survivors", scenario=scenario, figure="known_ms", unit="ms"),
        Row(
            what="… next acknowledged write (librdkafka)",
            scenario=scenario,
            figure="acknowledged_ms",
            unit="ms",
            aim=0.1,
        ),
    )


ROWS = (
    Row(
        what="produce throughput (librdkafka, 1000 B, 6 partitions)",
        scenario="produce",
        figure="mb_per_s",
        unit="MB/s",
        aim=1.5,
        more_is_better=True,
    ),
    Row(what="CPU of three nodes per GB", scenario="produce", figure="cpu_s_per_gb", unit="s", aim=0.4),
    Row(what="one write at a time, p50", scenario="latency", figure="p50_ms", unit="ms"),
    Row(what="one write at a time, p99", scenario="latency", figure="p99_ms", unit="ms", aim=0.7),
    Row(what="memory of three nodes (PSS)", scenario="memory", figure="pss_mb", unit="MB", aim=0.1),
    *_failover("failover", "`kill -9` of the leader"),
    *_failover("failover-controller", "leader that is active controller"),
    Row(what="start of the cluster to full ISR", scenario="start", figure="in_sync_ms", unit="ms", aim=0.2),
    Row(
        what="many partitions: created, and a write to each acknowledged",
        scenario="many",
        figure="created_ms",
        unit="ms",
    ),
    Row(
        what="… `kill -9` of a node: leaders of all on survivors", scenario="many", figure="led_ms", unit="ms"
    ),
    Row(what="… a write to each acknowledged", scenario="many", figure="written_ms", unit="ms"),
    Row(what="… the killed node started again: full ISR", scenario="many", figure="rejoined_ms", unit="ms"),
    Row(
        what="… all stopped and started: full ISR, a write to each",
        scenario="many",
        figure="restarted_ms",
        unit="ms",
    ),
)
_ROUNDS_ENOUGH = 3
_HOW = """Three nodes on one machine, each broker and controller, RF=3, min ISR 2, acks=all. The two clusters take
turns: each is started, shown every kind of work once, measured and stopped, and who comes first changes from round to
round. Medians, in brackets the lowest and the highest round; the ratio is the median of the rounds' ratios. Failover
polls metadata on the survivors beside a librdkafka producer, every two milliseconds at best."""
_MANY = """*Many partitions* is a topic of {partitions:,}, each with three replicas: {replicas:,} logs on one disk.
Metadata is polled ten times a second there; both brokers show new partitions in sync before they have touched the
disk, so writes count. It is measured in the first round alone."""


def render(results: Results) -> str:
    run, facts = results.run, results.run["machine"]
    lines = [
        "# A cluster beside Apache Kafka's",
        "",
        f"Made by `python -m bench.cluster` on {run['date']}, {run['rounds_done']} round(s) of {run['megabytes']} MB.",
        _HOW,
        *([_MANY.format(partitions=many, replicas=3 * many)] if (many := run.get("partitions")) else []),
        "",
        "| | Strandline | Apache Kafka | ratio | aim |",
        "| --- | --- | --- | --- | --- |",
    ]
    missed = []
    for row in ROWS:
        ours = results.spread(row.scenario, STRANDLINE, row.figure)
        theirs = results.spread(row.scenario, KAFKA, row.figure)
        ratio = results.ratio(row.scenario, row.figure, STRANDLINE, KAFKA)
        if ours is None or theirs is None or ratio is None:
            continue
        aim = ""
        if row.aim is not None:
            aim = f"{'≥' if row.more_is_better else '≤'} {row.aim}×"
            reached = ratio.median >= row.aim if row.more_is_better else ratio.median <= row.aim
            if not reached:
                missed.append(f"{row.what} ({ratio.median:.2f}×, aim {aim})")
        lines.append(
            f"| {row.what} | {_shown(ours, row.unit)} | {_shown(theirs, row.unit)} | {ratio.median:.2f}× | {aim} |"
        )
    detected = [
        f"{name}: {_shown(spread, 'ms')}"
        for name in ("failover", "failover-controller")
        if (spread := results.spread(name, STRANDLINE, "detected_ms")) is not None
    ]
    others = max((s.figures.get("others_cores", 0.0) for s in results.samples), default=0.0)
    return "\n".join(
        [
            *lines,
            "",
            *_doubts(run["rounds_done"], others),
            f"Aims missed: {'; '.join(missed)}."
            if missed
            else "Every aim that is measured here was reached in this run.",
            "",
            f"Strandline's detection alone, from its log: {'; '.join(detected) or 'not seen'}. Kafka waits for",
            "`broker.session.timeout.ms` (9 s); a silent host costs Strandline the same.",
            "",
            (
                f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
                f"Python {facts['python']}, {facts['java']}, Kafka {facts['kafka']}, "
                f"librdkafka {facts['librdkafka']}. Revision {run['revision']}."
            ),
            f"Other programs used up to {others:.1f} cores while writing was measured: with three nodes and",
            f"a client on {facts['cores']} cores, throughput is what the machine has left.",
            "Every sample is in [cluster.json](cluster.json).",
            "",
        ]
    )


def _doubts(rounds: int, others_cores: float) -> list[str]:
    """Returns the paragraph about the limits of the figures."""
    if rounds >= _ROUNDS_ENOUGH and others_cores <= OTHERS_CORES_MAX:
        return []
    return [
        f"**Read with care**: {rounds} round(s) where {_ROUNDS_ENOUGH} are the least that shows a spread, and other",
        f"programs used {others_cores:.1f} cores of the machine meanwhile. Three JVMs that were warmed with little and",
        "still compile probably suffer more from that than Strandline: on a quiet machine Kafka's throughput, CPU,",
        "latency and start should be better than here. How much was not measured.",
        "",
    ]


def _shown(spread: Spread, unit: str) -> str:
    def text(value: float) -> str:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

    return f"{text(spread.median)} {unit} ({text(spread.low)}–{text(spread.high)})"
