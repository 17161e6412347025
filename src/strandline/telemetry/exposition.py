"""Metrics as text: Prometheus' format 0.0.4, and OpenMetrics 1.0.

1. The samples of one family stand together, after its help and its type.
2. A counter's name ends with `_total`. OpenMetrics names the family without it.
3. Families with a series for each topic, group or partition come last, in the order of their rank. A family that
   exceeds the limit on series is left out as a whole, since a part of it would make every sum wrong;
   `strandline_metrics_left_out_series` counts its series.
4. The text is made in pieces, so that a node can do other work between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
SUMMARY: Final = "summary"
HISTOGRAM: Final = "histogram"

# The rank of a family, by its number of series: a few, one for each topic or group, one for each partition.
FEW: Final = 0
MANY: Final = 1
PER_PARTITION: Final = 2
# Metrics that clients push are left out first.
PER_CLIENT: Final = 3

_LEFT_OUT: Final = "strandline_metrics_left_out_series"
_LINES_IN_A_PIECE: Final = 200

# A sample: the rest of the name and the labels as they are written, and the value: ('{topic="a"}', 1).
Sample = tuple[str, float]


class Family(NamedTuple):
    """One metric with all of its series."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]
    rank: int = FEW


# A collector yields families, and None where it can be interrupted.
Families = Iterator[Family | None]


def labels(**values: object) -> str:
    """Returns labels as they are written; an empty text if there are none."""
    if not values:
        return ""
    return "{" + ",".join(f'{name}="{escaped(str(value))}"' for name, value in values.items()) + "}"


def escaped(text: str) -> str:
    """Returns a label's value, escaped for both formats. Topics have no such characters, but groups and client ids
    may."""
    if '"' in text or "\\" in text or "\n" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def with_label(written: str, name: str, value: str) -> str:
    """Returns written labels with one more."""
    return f'{written[:-1]},{name}="{value}"}}' if written else f'{{{name}="{value}"}}'


def gauge(name: str, help_: str, value: float | None = None, *samples: Sample, rank: int = FEW) -> Family:
    return Family(name, GAUGE, help_, samples if value is None else (("", value), *samples), rank)


def counter(name: str, help_: str, value: float | None = None, *samples: Sample, rank: int = FEW) -> Family:
    assert name.endswith("_total"), name
    return Family(name, COUNTER, help_, samples if value is None else (("", value), *samples), rank)


def render(families: Iterable[Family | None], *, is_open_metrics: bool, series_max: int) -> Iterator[str]:
    """Yields the page in pieces, some of them empty. `series_max` counts all series, and limits those of higher
    ranks."""
    left_out: list[Sample] = []
    count = 0
    for family in families:
        if family is None:
            yield ""
            continue
        if family.rank > FEW and count + len(family.samples) > series_max:
            left_out.append((labels(metric=family.name), len(family.samples)))
            continue
        count += len(family.samples)
        yield from _render_family(family, is_open_metrics)
    yield from _render_family(
        gauge("strandline_metrics_series", "Series on this page.", count + len(left_out) + 1), is_open_metrics
    )
    help_ = "Series of metrics that were left out, because strandline.metrics.series.max would have been exceeded."
    yield from _render_family(gauge(_LEFT_OUT, help_, None, *left_out), is_open_metrics)
    if is_open_metrics:
        yield "# EOF\n"


def _render_family(family: Family, is_open_metrics: bool) -> Iterator[str]:
    if not family.samples:
        return
    name, kind, help_, samples, _ = family
    head = name.removesuffix("_total") if is_open_metrics and kind == COUNTER else name
    escape = escaped(help_) if is_open_metrics else help_.replace("\\", "\\\\").replace("\n", "\\n")
    lines = [f"# HELP {head} {escape}\n# TYPE {head} {kind}\n"]
    for start in range(0, len(samples), _LINES_IN_A_PIECE):
        lines += [
            f"{name}{key} {value if type(value) is int else number(value)}\n"
            for key, value in samples[start : start + _LINES_IN_A_PIECE]
        ]
        yield "".join(lines)
        lines = []


def number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
