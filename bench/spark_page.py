"""docs/benchmarks/spark.md from the results of a run."""

from __future__ import annotations

from typing import Final

from bench.results import Results

_FIGURES: Final = {"read": "mb_per_s", "write": "krecords_per_s", "stream": "batch_ms"}
# Scenario, ours, theirs, the ratio that was aimed at, and whether more is better.
_AIMS: Final = (
    ("read", "strandline", "kafka, tuned", 1.0, True),
    ("read", "strandline", "kafka", 2.0, True),
    ("write", "strandline, one transaction", "kafka", 0.9, True),
    ("stream", "strandline, exactly once", "kafka", 1.2, False),
)
# What a run on an idle machine adds to the load by itself, at most.
_OWN_LOAD: Final = 3
_NOTES: Final = (
    "Not measured: client CPU, streams into Parquet, Avro, and how the time of a micro-batch divides. From reading",
    "the source of PySpark and ours: Spark starts Python processes in the driver to plan each micro-batch of a Python",
    "source or sink, and the exactly-once sink shuffles rows by output partition and sends them through Python twice,",
    "to place and to write them.",
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
        figure = _FIGURES[scenario.partition("-")[0]]
        lines += [f"**{about['doc']}**", "", "| | median | |", "| --- | ---: | --- |"]
        for peer in about["peers"]:
            found = results.spread(scenario, peer, figure)
            assert found is not None
            lines.append(f"| {peer} | {found.median:.0f} | ({found.low:.0f} – {found.high:.0f}) |")
        lines.append("")
    lines += ["## What was aimed at", "", "| | aim | found | |", "| --- | ---: | ---: | --- |"]
    for kind, ours, theirs, aim, more_is_better in _AIMS:
        for scenario in results.scenarios:
            if not scenario.startswith(kind):
                continue
            ratio = results.ratio(scenario, _FIGURES[kind], ours, theirs)
            assert ratio is not None
            met = ratio.median >= aim if more_is_better else ratio.median <= aim
            sign = "≥" if more_is_better else "≤"
            verdict = "met" if met else "**missed**"
            lines.append(f"| {scenario}: {ours} / {theirs} | {sign} {aim} | {ratio.median:.2f} | {verdict} |")
    return "\n".join([*lines, "", *_NOTES, ""])
