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
    return "\n".join([*lines, ""])
