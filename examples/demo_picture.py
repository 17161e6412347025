"""The demo's timeline: what was acknowledged, which batches were committed, who was killed; as text and as an SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BARS = " ▁▂▃▄▅▆▇█"
COLUMNS = 64
WIDTH, LEFT, STRIP = 900, 110, 90
COLOURS = ("#2a6f97", "#f4a259", "#6a994e", "#8d6a9f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    driver: int
    began: float
    ended: float
    records: int


@dataclass(slots=True, kw_only=True)
class Timeline:
    """Times are seconds since the run began."""

    acknowledged: Mapping[int, int]
    batches: list[Batch] = field(default_factory=list)
    kills: list[tuple[float, str]] = field(default_factory=list)
    ended: float = 0.0

    @property
    def seconds(self) -> float:
        return max([self.ended, 1.0, *(batch.ended for batch in self.batches)])

    @property
    def drivers(self) -> list[int]:
        return sorted({batch.driver for batch in self.batches})


def as_text(timeline: Timeline) -> str:
    scale = COLUMNS / timeline.seconds

    def column(at: float) -> int:
        return min(COLUMNS - 1, max(0, int(at * scale)))

    rates = [0.0] * COLUMNS
    for second, count in timeline.acknowledged.items():
        for part in range(column(second), max(column(second), column(second + 1) - 1) + 1):
            rates[part] = max(rates[part], count)
    most = max(rates) or 1.0
    rows = {"acks/s": "".join(BARS[round(rate / most * (len(BARS) - 1))] for rate in rates)}
    for driver in timeline.drivers:
        cells = [" "] * COLUMNS
        for batch in (each for each in timeline.batches if each.driver == driver):
            first, last = column(batch.began), column(batch.ended)
            cells[first : last + 1] = ["━"] * (last - first + 1)
            cells[last] = "●"
        rows[f"driver {driver}"] = "".join(cells)
    marks = [" "] * COLUMNS
    for at, _ in timeline.kills:
        marks[column(at)] = "✖"
    rows["kill -9"] = "".join(marks)
    lines = [f"{name:>9} │{cells}│" for name, cells in rows.items()]
    lines.append(f"{'':>9} 0 s{'':{COLUMNS - 8}}{timeline.seconds:.0f} s")
    lines.append(f"{'':>9} at most {most:,.0f} acks/s; ● a batch is committed; " + _kills(timeline))
    return "\n".join(lines)


def _kills(timeline: Timeline) -> str:
    return ", ".join(f"✖ {at:.1f} s {what}" for at, what in timeline.kills)


def as_svg(timeline: Timeline) -> str:
    scale = (WIDTH - LEFT - 20) / timeline.seconds
    height = STRIP + 40 * len(timeline.drivers) + 90

    def x(at: float) -> float:
        return LEFT + at * scale

    size = f'width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect {size} fill="white"/>',
        f'<text x="10" y="{STRIP - 10}">acks per second</text>',
    ]
    most = max(timeline.acknowledged.values(), default=1)
    for second, count in sorted(timeline.acknowledged.items()):
        tall = count / most * (STRIP - 30)
        parts.append(
            f'<rect x="{x(second):.1f}" y="{STRIP - tall:.1f}" width="{max(1.0, scale - 1):.1f}" '
            f'height="{tall:.1f}" fill="{COLOURS[0]}"><title>{count:,} in second {second}</title></rect>'
        )
    for row, driver in enumerate(timeline.drivers):
        top = STRIP + 12 + 40 * row
        parts.append(f'<text x="10" y="{top + 18}">Spark driver {driver}</text>')
        for batch in (each for each in timeline.batches if each.driver == driver):
            parts.append(
                f'<rect x="{x(batch.began):.1f}" y="{top}" width="{(batch.ended - batch.began) * scale:.1f}" '
                f'height="26" fill="{COLOURS[1 + row % 3]}" stroke="white">'
                f"<title>{batch.records:,} records, {batch.ended - batch.began:.1f} s</title></rect>"
            )
    bottom = STRIP + 20 + 40 * len(timeline.drivers)
    for at, what in timeline.kills:
        parts.append(f'<line x1="{x(at):.1f}" y1="20" x2="{x(at):.1f}" y2="{bottom}" stroke="#c1121f"/>')
        parts.append(f'<text x="{x(at) + 4:.1f}" y="16" fill="#c1121f">kill -9: {what}</text>')
    for tick in range(0, int(timeline.seconds) + 1, max(1, int(timeline.seconds / 10))):
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 20}" text-anchor="middle">{tick} s</text>')
    return "\n".join([*parts, "</svg>\n"])
