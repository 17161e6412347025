"""docs/benchmarks/complexity.md, made from the results of a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any, Final

from bench.charts import short
from bench.results import Results
from bench.tables import NOTHING, markdown, paragraph

PEER: Final = "strandline"
# Times of microseconds differ by that factor from one size to another without any cause in the code: caches, the
# page cache, the clock of the processor.
NOISE: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation, its figure, what it is measured over, and the order that is claimed for it."""

    what: str
    figure: str
    over: str
    claim: str


OPERATIONS: Final = (
    Operation(what="append a batch", figure="append", over="segments of the log", claim="O(1)"),
    Operation(what="read at an offset", figure="read", over="segments of the log", claim="O(1)"),
    Operation(
        what="find the offset of a time", figure="by_time", over="segments of the log", claim="O(log n)"
    ),
    Operation(what="rebalance a group", figure="rebalance", over="members, a partition each", claim="O(n)"),
    Operation(what="… per member", figure="rebalance_member", over="", claim="O(1)"),
    Operation(
        what="elect leaders after a failure",
        figure="elections",
        over="partitions of the broker",
        claim="O(n)",
    ),
    Operation(what="… per partition", figure="election", over="", claim="O(1)"),
)


def expected(claim: str, first: int, last: int) -> float:
    """Returns the growth that the claim allows from the first size to the last."""
    if claim == "O(1)":
        return 1.0
    if claim == "O(n)":
        return last / first
    return log2(2 * last) / log2(2 * first)


def verdict(growth: float, allowed: float) -> str:
    if growth <= allowed * NOISE:
        return "holds"
    return "**grows faster**"


def render(results: Results) -> str:
    run = results.run
    sizes = [int(each) for each in run["sizes"]]
    first, last = sizes[0], sizes[-1]
    rows, faster = [], []
    for each in OPERATIONS:
        medians = [_median(results, size, each.figure) for size in sizes]
        begun, ended = medians[0], medians[-1]
        if begun is None or ended is None:
            continue
        growth, allowed = ended / begun, expected(each.claim, first, last)
        held = verdict(growth, allowed)
        if held != "holds":
            faster.append(each.what.removeprefix("… "))
        cells = [NOTHING if value is None else _time(value) for value in medians]
        label = f"{each.what} ({each.over})" if each.over else each.what
        rows.append([label, *cells, each.claim, f"{short(allowed)}×", f"{short(growth)}×", held])
    loads = [sample.figures["load"] for sample in results.samples]
    header = ["n =", *(f"{size:,}" for size in sizes), "claim", "would grow", "grew", ""]
    parts = [
        "# Complexity of the operations, measured\n",
        paragraph(
            f"Made by `python -m bench.complexity` on {run['date']}, {run['rounds']} rounds; medians. Descriptions of",
            "Kafka's architecture say how the cost of an operation grows with the size of a log, a group or a broker.",
            f"The table sets the claim beside the measured growth from {first:,} to {last:,}. A claim holds if the",
            f"cost grew by no more than {NOISE:g} times what the claim allows: microseconds differ by that much for",
            "reasons outside of the code.",
        ),
        markdown(header, rows),
        paragraph(_conclusion(faster)),
        paragraph(
            "- The three operations of a log run in this process on real files, without a network:",
            f"{run['batches_per_segment']} batches of one record of {run['record_bytes']:,} B per segment, at random",
            "offsets, after a warm-up; the median of 2,000. At most 50 files are open, so with 100 and more segments",
            "most reads open a file first: a step up, and no growth. The search for a time looks at the segments one",
            "by one, at some tens of nanoseconds each, and by halves within the one that it finds.",
        ),
        paragraph(
            "- A rebalance runs against a broker. All members are connections of one process. The time runs from the",
            "leader's JoinGroup until the last member has its share. The leader gets the list of all members, and",
            "sends all shares.",
        ),
        paragraph(
            "- An election is the controller's decision when a broker ends that led n partitions: it plans the records",
            "and applies them. Writing and publishing them, and the clients' way to the new leaders, are in",
            "[the page about clusters](cluster.md).",
        ),
        paragraph(
            _machine(run["machine"]),
            f"The load average was {min(loads):.1f} to {max(loads):.1f}. Revision {run['revision']}. Every sample is",
            "in [complexity.json](complexity.json).",
        ),
    ]
    return "\n".join(parts)


def _conclusion(faster: list[str]) -> str:
    if not faster:
        return "Nothing grows faster than is claimed."
    return f"Grows faster than is claimed: {', '.join(faster)}."


def _median(results: Results, size: int, figure: str) -> float | None:
    spread = results.spread(str(size), PEER, figure)
    return None if spread is None else spread.median


def _time(microseconds: float) -> str:
    if microseconds >= 1000:
        return f"{short(microseconds / 1000)} ms"
    return f"{short(microseconds)} µs"


def _machine(facts: dict[str, Any]) -> str:
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
        f"{facts['filesystem']}, Python {facts['python']}."
    )
