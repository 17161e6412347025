"""Makes docs/benchmarks/spark.md from the results of a run."""

from __future__ import annotations

from typing import Final

from bench.results import Results

_FIGURES: Final = {
    "read": "mb_per_s",
    "write": "krecords_per_s",
    "stream": "batch_ms",
    "parquet": "krecords_per_s",
    "avro": "krecords_per_s",
}
# What is shown beside the figure where it was measured too.
_MORE: Final = {"cpu_s": "s of CPU", "batch_ms": "ms of a micro-batch"}
_SHORT: Final = {"cpu_s": "CPU", "batch_ms": "micro-batches"}
# Scenario, figure, ours, theirs, the ratio that was aimed at, and whether more is better.
_AIMS: Final = (
    ("read", "mb_per_s", "strandline", "kafka, tuned", 1.0, True),
    ("read", "mb_per_s", "strandline", "kafka", 2.0, True),
    ("read", "cpu_s", "strandline", "kafka", 1.2, False),
    ("write", "krecords_per_s", "strandline, one transaction", "kafka", 0.9, True),
    ("stream", "batch_ms", "strandline, exactly once", "kafka", 1.2, False),
    ("stream", "batch_ms", "strandline, exactly once, new keys", "kafka", 1.2, False),
    ("parquet", "krecords_per_s", "strandline", "kafka", 1.0, True),
    ("parquet", "batch_ms", "strandline", "kafka", 1.0, False),
    ("avro", "krecords_per_s", "strandline", "kafka, tuned, and from_avro", 1.0, True),
)
# What a run on an idle machine adds to the load by itself, at most.
_OWN_LOAD: Final = 3
_NOTES: Final = (
    "CPU is that of Spark's driver, its JVM and all its Python processes, without the broker's. Before each figure",
    "the JVM collects garbage. Spark's connector caches the records of a batch query for five minutes, here for five",
    "seconds: 185 MB of each tuned query of 1 kB records, which no other query uses. A few such queries fill the heap",
    "that all share, and the next query, the connector's or ours, is several times as slow.",
    "",
    "## Spark's own part",
    "",
    "The *empty Python source* gives one row to each of four tasks, and its rows are not written. It shows the cost",
    "of a micro-batch of a Python source before ours does anything; a good part of it is a wait that ours avoids (ADR",
    "24). The exactly-once sink has a job of its own for each micro-batch, which Spark plans again. Rows without a",
    "key are written by the tasks that read them; with *new keys* there is a second stage, because rows are shuffled",
    "so that one task writes each partition. `kafka` here writes at least once, in one stage, and its rows have no",
    "keys.",
    "",
    "For Parquet the whole query counts, with its start; the time of micro-batches is shown beside it where it was",
    "measured. For a query whose source is in Python Spark starts a process that plans its batches. Spark gives it",
    "PySpark as a zip file, which Python compiles again each time: 0.9 s of CPU time, where an installed package",
    "takes 0.2 s. The session here has called `use_installed_python`, as the guide advises, and avoids that.",
    "",
    "A Python process that Spark starts for tasks loads pandas, Arrow and the compiled kernels first, which takes",
    "seconds. It is kept for a minute without work. The figures are of processes that were started before.",
    "",
    "After each task PySpark has Python collect garbage, which walks all loaded objects: 40 ms with PySpark's own",
    "modules, 85 ms with ours, on this machine. Our tasks exempt the loaded modules",
    "(`spark/runtime/worker_setup.py`).",
)


def page(results: Results) -> str:
    run = results.run
    facts = run["machine"]
    lines = [
        "# Spark: beside its own connector",
        "",
        (
            f"From `python -m bench.spark_run`, {run['date']}, revision {run['revision']}: {run['rounds']} rounds, "
            f"scale {run['scale']}, local[2], broker and Spark together on {facts['cores']} cores ({facts['cpu']}). "
            "Formats alternate; medians, with the lowest and highest round in brackets."
        ),
        "",
    ]
    began, ended = run["load_average"]
    if max(began, ended) > facts["cores"] + _OWN_LOAD:
        lines += [
            f"**Other work ran on the machine**: the load average was {began:.0f} at first and {ended:.0f} at last.",
            "Figures are low and far apart: ratios are worth more than figures, and neither is worth much.",
            "",
        ]
    for scenario, about in results.scenarios.items():
        lines += [f"**{about['doc']}**", "", *_table(results, scenario, about["peers"]), ""]
    lines += ["## Aims", "", "| | aim | found | |", "| --- | ---: | ---: | --- |"]
    for kind, figure, ours, theirs, aim, more_is_better in _AIMS:
        for scenario in results.scenarios:
            if not scenario.startswith(kind):
                continue
            ratio = results.ratio(scenario, figure, ours, theirs)
            assert ratio is not None
            met = ratio.median >= aim if more_is_better else ratio.median <= aim
            sign = "≥" if more_is_better else "≤"
            verdict = "met" if met else "**missed**"
            what = scenario if figure == _FIGURES[kind] else f"{scenario}, {_SHORT[figure]}"
            lines.append(f"| {what}: {ours} / {theirs} | {sign} {aim} | {ratio.median:.2f} | {verdict} |")
    return "\n".join([*lines, "", *_NOTES, ""])


def _table(results: Results, scenario: str, peers: list[str]) -> list[str]:
    """Returns the scenario's figure with its spread, and the medians of its other figures."""
    figure = _FIGURES[scenario.partition("-")[0]]
    more = [
        (name, words)
        for name, words in _MORE.items()
        if name != figure and results.spread(scenario, peers[0], name) is not None
    ]
    lines = [
        "| | median | |" + "".join(f" {words} |" for _, words in more),
        "| --- | ---: | --- |" + " ---: |" * len(more),
    ]
    for peer in peers:
        found = results.spread(scenario, peer, figure)
        assert found is not None
        line = f"| {peer} | {found.median:.0f} | ({found.low:.0f} – {found.high:.0f}) |"
        for name, _ in more:
            other = results.spread(scenario, peer, name)
            assert other is not None
            line += f" {other.median:.{1 if name == 'cpu_s' else 0}f} |"
        lines.append(line)
    return lines
