"""Makes the rows of the page: figures with their spread, ratios with their aims, and the bottleneck of a step."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from bench.aims import Aim, aim_for
from bench.charts import short
from bench.measure import OTHERS_CORES_MAX
from bench.peers import KAFKA, STRANDLINE
from bench.results import Results, Spread

NOTHING = "—"
# A thread that is on a processor for this share of the time has no time left for more.
SATURATED_SHARE = 0.85
DISTURBED = "‡"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table whose first column is text and whose other columns are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def paragraph(*sentences: str) -> str:
    """Returns text in lines that fit a page."""
    return fill(" ".join(sentences), 110, break_long_words=False, break_on_hyphens=False) + "\n"


def with_spread(spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    if spread.low == spread.high:
        return short(spread.median)
    return f"{short(spread.median)} ({short(spread.low)}–{short(spread.high)})"


def ratio_text(spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    if spread.low == spread.high:
        return f"**{spread.median:.2f}×**"
    return f"**{spread.median:.2f}×** ({spread.low:.2f}–{spread.high:.2f})"


def aim_cells(aim: Aim | None, ratio: Spread | None) -> list[str]:
    if aim is None or ratio is None:
        return [NOTHING, NOTHING]
    return [str(aim), aim.verdict(ratio.median)]


def compared(results: Results, scenario: str, figure: str) -> list[str]:
    """Returns a row: Strandline, Apache Kafka, their ratio, its aim, and the verdict."""
    ratio = results.ratio(scenario, figure, STRANDLINE, KAFKA)
    aim = aim_for(figure, results.scenarios.get(scenario, {}))
    return [
        with_spread(results.spread(scenario, STRANDLINE, figure)),
        with_spread(results.spread(scenario, KAFKA, figure)),
        ratio_text(ratio),
        *aim_cells(aim, ratio),
    ]


def label(results: Results, scenario: str) -> str:
    """Returns the name of a workload in words, with a mark if other programs disturbed it."""
    told = results.scenarios[scenario]
    size = (
        f"{told['record_bytes']} B" if told["record_bytes"] < 1000 else f"{told['record_bytes'] // 1000} kB"
    )
    count = told["partitions"]
    mark = f" {DISTURBED}" if is_disturbed(results, scenario) else ""
    return f"{told['client']}, {size} × {count} partition{'s' if count > 1 else ''}{mark}"


def is_disturbed(results: Results, scenario: str) -> bool:
    """True if other programs disturbed the median round; one or two disturbed rounds only widen the spread."""
    others = [results.spread(scenario, peer, "others_cores") for peer in (STRANDLINE, KAFKA)]
    return any(spread is not None and spread.median > OTHERS_CORES_MAX for spread in others)


def held_back_by(results: Results, scenario: str, peer: str, what: str, cores: int) -> str:
    """Returns the bottleneck of a step: a thread of the client or of the broker, or the machine."""

    def median(figure: str) -> float:
        spread = results.spread(scenario, peer, f"{what}_{figure}")
        return spread.median if spread is not None else 0.0

    if median("client_thread_share") >= SATURATED_SHARE:
        return "client"
    if median("broker_thread_share") >= SATURATED_SHARE:
        return "broker"
    others = results.spread(scenario, peer, "others_cores")
    busy = median("client_cores") + median("broker_cores") + (others.median if others is not None else 0.0)
    if busy >= SATURATED_SHARE * cores:
        return "all cores"
    return "waiting"
