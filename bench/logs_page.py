"""Makes docs/benchmarks/logs.md from the results of a run."""

from __future__ import annotations

from typing import Any, Final

from bench.peers import KAFKA, STRANDLINE
from bench.results import Results, Spread

_HOW: Final = """Each scenario runs on both brokers one after the other, alone; rounds take turns with who is first.
Medians, in brackets the lowest and highest round. The ratio is the median of the rounds' ratios, above 1 where
Strandline is better."""
_SETTINGS: Final = """Both brokers have the settings they ship with but `log.cleaner.backoff.ms=100`, so that the wait
for the cleaner's next turn is no part of the result; Kafka has the heap and the options of its own scripts, and no
warm-up. Memory is the proportional set size of the broker with its children, the largest of samples 50 ms apart.
Strandline compacts logs from 64 MB on with compiled code (`pip install 'strandline[columnar]'`) in a process of its
own, compiled before; without it, it takes some ten times as long. After a kill Kafka's broker is not let in again
before its old session has ended, `broker.session.timeout.ms`, 9 s by default."""

# Scenario, figure, what it is, its unit, and whether more is better.
_ROWS: Final = (
    ("compaction", "mb_per_s", "compaction of {log}, {keys} keys", " MB/s", True),
    ("compaction", "seconds", "… from the change of the policy to the checkpoint", " s", False),
    ("compaction", "broker_cpu_s", "… CPU of the broker and its children", " s", False),
    ("compaction", "peak_pss_mb", "… peak memory", " MB", False),
    ("latency", "compacting_p99_ms", "p99 of an acknowledgement while logs are compacted", " ms", False),
    ("latency", "idle_p99_ms", "… and while none is, in turns", " ms", False),
    ("latency", "p99_ratio", "… the first as a multiple of the second", "×", False),
    (
        "restart",
        "first_ack_s",
        "restart after a kill, {partitions} partitions: first acknowledgement",
        " s",
        False,
    ),
    ("restart", "all_acks_s", "… an acknowledgement of every partition", " s", False),
)


def render(results: Results) -> str:
    run = results.run
    rows, worse = [], []
    for name, figure, what, unit, more_is_better in _ROWS:
        ours, theirs = results.spread(name, STRANDLINE, figure), results.spread(name, KAFKA, figure)
        ratio = results.ratio(name, figure, STRANDLINE, KAFKA)
        if ours is None or theirs is None or ratio is None:
            continue
        better = ratio.median if more_is_better else 1 / ratio.median
        said = what.format(
            log=f"{run['log_bytes'] / 1e9:g} GB", keys=f"{run['keys']:,}", partitions=f"{run['partitions']:,}"
        )
        if better < 1:
            worse.append(f"{said} ({better:.2f}×)")
        rows.append(f"| {said} | {_shown(ours, unit)} | {_shown(theirs, unit)} | {better:.2f}× |")
    verdict = (
        f"Worse than with Kafka: {'; '.join(worse)}."
        if worse
        else "Nothing measured here is worse than with Kafka."
    )
    others = max(sample.figures["others_cores"] for sample in results.samples)
    return "\n".join(
        [
            "# Logs over time beside Apache Kafka",
            "",
            f"Made by `python -m bench.logs` on {run['date']}, {run['rounds']} round{'s' * (run['rounds'] > 1)}.",
            _HOW,
            "",
            "| | Strandline | Apache Kafka | ratio |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            verdict,
            "",
            _SETTINGS,
            "",
            _machine(run["machine"], run["revision"]),
            f"Other programs used up to {others:.1f} cores during a step.",
            "Every sample is in [logs.json](logs.json).",
            "",
        ]
    )


def _machine(facts: dict[str, Any], revision: str) -> str:
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
        f"Python {facts['python']}, {facts['java']}, Kafka {facts['kafka']}. Revision {revision}."
    )


def _shown(spread: Spread, unit: str) -> str:
    def text(value: float) -> str:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

    return f"{text(spread.median)}{unit} ({text(spread.low)}–{text(spread.high)})"
