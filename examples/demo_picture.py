"""The demo's timeline: acknowledgements, leaders, batches and events; as text for a terminal and as an SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

BARS = " ▁▂▃▄▅▆▇█"
CIRCLES = "①②③④⑤⑥⑦⑧⑨"
COLUMNS = 72
SLICES = 2  # acknowledgements are counted by half seconds
NOBODY = -1

WIDTH, LEFT, RIGHT = 1000, 130, 50
RATE_HEIGHT, LANE, GAP = 90, 24, 14
CIRCLE_RADIUS = 9
INK, MUTED, RED = "#1f2933", "#616e7c", "#c1121f"
RATE_COLOUR = "#2a6f97"
BROKER_COLOURS = ("#8ecae6", "#ffb703", "#90be6d", "#cdb4db")
DRIVER_COLOURS = ("#577590", "#bc6c25", "#6a994e")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    number: int
    driver: int
    began: float
    ended: float
    records: int
    is_killed: bool = False  # its driver was killed before it was committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """From when on a broker leads a partition; NOBODY for none."""

    at: float
    partition: int
    broker: int


@dataclass(slots=True, kw_only=True)
class Timeline:
    """Times are seconds since the run began."""

    acknowledged: Mapping[int, int]  # by half second
    batches: list[Batch] = field(default_factory=list)
    leaders: list[Led] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
    ended: float = 0.0

    @property
    def seconds(self) -> float:
        return max([self.ended, 1.0, *(batch.ended for batch in self.batches)])

    @property
    def drivers(self) -> list[int]:
        return sorted({batch.driver for batch in self.batches})

    @property
    def partitions(self) -> list[int]:
        return sorted({each.partition for each in self.leaders})

    def reigns(self, partition: int) -> list[tuple[float, float, int]]:
        """From when to when which broker leads the partition."""
        changes = [each for each in self.leaders if each.partition == partition]
        ends = [each.at for each in changes[1:]] + [self.seconds]
        return [(each.at, end, each.broker) for each, end in zip(changes, ends, strict=True)]


# For the terminal


def as_text(timeline: Timeline) -> str:
    scale = COLUMNS / timeline.seconds

    def column(at: float) -> int:
        return min(COLUMNS - 1, max(0, int(at * scale)))

    rates = _rates(timeline, scale)
    most = max(rates) or 1.0
    rows = {"acks/s": "".join(BARS[round(rate / most * (len(BARS) - 1))] for rate in rates)}
    for partition in timeline.partitions:
        cells = [" "] * COLUMNS
        for began, ended, broker in timeline.reigns(partition):
            for each in range(column(began), column(ended) + 1):
                cells[each] = "·" if broker == NOBODY else str(broker)
        rows[f"orders-{partition}"] = "".join(cells)
    for driver in timeline.drivers:
        cells = [" "] * COLUMNS
        for batch in (each for each in timeline.batches if each.driver == driver):
            first, last = column(batch.began), column(batch.ended)
            blank = [at for at in range(first, last + 1) if cells[at] == " "]
            for at in blank:
                cells[at] = "━"
            cells[last] = "x" if batch.is_killed else "●"
        rows[f"driver {driver}"] = "".join(cells)
    rows["events"] = _event_row([column(at) for at, _ in timeline.events])
    lines = [f"{name:>9} │{cells}│" for name, cells in rows.items()]
    lines.append(f"{'':>9}  0 s{timeline.seconds:>{COLUMNS - 5}.0f} s")
    lines.append(f"acks/s     orders that were acknowledged, at most {most:,.0f} a second")
    lines.append("orders-N   the number of the broker that leads this partition of the topic; · is nobody")
    lines.append(
        "driver N   Spark at work: each ● is a batch whose results were committed, x one that was killed"
    )
    for circle, (at, what) in zip(CIRCLES, timeline.events, strict=False):
        lines.append(f"{circle} {at:6.1f} s  {what}")
    return "\n".join(lines)


def _event_row(columns: list[int]) -> str:
    """Circles at their columns, or at the next one that is free."""
    cells = [" "] * COLUMNS
    for circle, wanted in zip(CIRCLES, columns, strict=False):
        free = [at for at in range(COLUMNS) if cells[at] == " "]
        at = min(free, key=lambda at: (abs(at - wanted), at < wanted))
        cells[at] = circle
    return "".join(cells)


def _rates(timeline: Timeline, scale: float) -> list[float]:
    """Acknowledgements a second in each column: the mean of the half seconds that it covers."""
    rates = []
    for each in range(COLUMNS):
        first = int(each / scale * SLICES)
        end = max(first + 1, int((each + 1) / scale * SLICES))
        rates.append(
            sum(timeline.acknowledged.get(part, 0) for part in range(first, end)) / (end - first) * SLICES
        )
    return rates


# For a browser


def as_svg(timeline: Timeline) -> str:
    return _Picture(timeline).drawn()


class _Picture:
    """The rows from the top: events, acknowledgements, leaders, drivers, the axis, and the meaning of each event."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._scale = (WIDTH - LEFT - RIGHT) / timeline.seconds
        self._parts: list[str] = []
        self._texts: list[str] = []  # over everything else

    def _x(self, at: float) -> float:
        return LEFT + at * self._scale

    def drawn(self) -> str:
        y = 52.0
        self._text(
            LEFT, 18, "make demo: orders, leaders and batches through two kill -9", size=15, weight="bold"
        )
        top = y
        y = self._rate_row(y) + GAP
        for partition in self._timeline.partitions:
            y = self._leader_row(partition, y)
        y += GAP
        for driver in self._timeline.drivers:
            y = self._driver_row(driver, y)
        y = self._axis(y + 4) + 30
        self._event_lines(top, y - 42)
        for number, (at, what) in enumerate(self._timeline.events, 1):
            self._circle(LEFT + CIRCLE_RADIUS, y - 4, number)
            self._text(LEFT + 26, y, f"{at:.1f} s  {what}")
            y += 22
        return self._page(y + 6)

    def _page(self, height: float) -> str:
        size = f'width="{WIDTH}" height="{height:.0f}"'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height:.0f}" '
            f'font-family="system-ui, sans-serif" font-size="13" role="img" '
            'aria-label="Timeline of the demo: orders a second, leaders of partitions, batches of Spark, and kills">'
        )
        return "\n".join([head, f'<rect {size} fill="white"/>', *self._parts, *self._texts, "</svg>\n"])

    def _text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        colour: str = INK,
        anchor: str = "start",
        size: int = 13,
        weight: str = "normal",
        halo: str = "",
    ) -> None:
        """A text; the halo covers a line that would cross it."""
        around = f' paint-order="stroke" stroke="{halo}" stroke-width="4"' if halo else ""
        self._texts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}"{around}>{escape(text)}</text>'
        )

    def _bar(self, x: float, y: float, width: float, height: float, colour: str, title: str) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" fill="{colour}">'
            f"<title>{escape(title)}</title></rect>"
        )

    def _rate_row(self, y: float) -> float:
        """The least and the most on the axis are round numbers."""
        counts = {part: count * SLICES for part, count in self._timeline.acknowledged.items()}
        most = max(counts.values(), default=1)
        bottom = y + RATE_HEIGHT
        for line, text in enumerate(("orders", "acknowledged", "a second")):
            self._text(LEFT - 10, y + 34 + 16 * line, text, anchor="end", size=12)
        for share in (1.0, 0.5):
            level = bottom - share * RATE_HEIGHT
            self._parts.append(
                f'<line x1="{LEFT}" y1="{level:.1f}" x2="{WIDTH - RIGHT}" y2="{level:.1f}" stroke="#cbd2d9"/>'
            )
            self._text(WIDTH - RIGHT + 6, level + 4, f"{most * share:,.0f}", colour=MUTED, size=11)
        for part, count in sorted(counts.items()):
            tall = count / most * RATE_HEIGHT
            width = self._scale / SLICES - 0.6
            title = f"{count:,} a second at {part / SLICES:.1f} s"
            self._bar(self._x(part / SLICES), bottom - tall, width, tall, RATE_COLOUR, title)
        return bottom

    def _leader_row(self, partition: int, y: float) -> float:
        self._text(LEFT - 10, y + 16, f"leader of orders-{partition}", anchor="end", size=12)
        for began, ended, broker in self._timeline.reigns(partition):
            left, width = self._x(began), (ended - began) * self._scale
            if broker == NOBODY:
                self._bar(left, y, width, LANE - 4, RED, f"nobody, for {ended - began:.2f} s")
                continue
            colour = BROKER_COLOURS[(broker - 1) % len(BROKER_COLOURS)]
            self._bar(left, y, width, LANE - 4, colour, f"broker {broker}, {began:.1f} to {ended:.1f} s")
            for text in (f"broker {broker}", str(broker)):
                if width > 7 * len(text) + 8:
                    self._text(left + 6, y + 15, text, size=12, halo=colour)
                    break
        return y + LANE

    def _driver_row(self, driver: int, y: float) -> float:
        self._text(LEFT - 10, y + 16, f"Spark driver {driver}", anchor="end", size=12)
        colour = DRIVER_COLOURS[(driver - 1) % len(DRIVER_COLOURS)]
        for batch in (each for each in self._timeline.batches if each.driver == driver):
            left, width = self._x(batch.began), (batch.ended - batch.began) * self._scale
            if batch.is_killed:
                self._parts.append(
                    f'<rect x="{left:.1f}" y="{y + 0.5:.1f}" width="{max(width, 0.5):.1f}" height="{LANE - 5}" '
                    f'fill="white" stroke="{colour}" stroke-dasharray="3 2"><title>killed in this batch</title></rect>'
                )
                continue
            title = f"batch {batch.number}: {batch.records:,} orders in {batch.ended - batch.began:.1f} s"
            self._bar(left, y, width - 1, LANE - 4, colour, title)
            for text in (f"{batch.records:,} orders", f"{batch.records:,}"):
                if width > 7 * len(text) + 6:
                    self._text(left + 6, y + 15, text, size=12, colour="white", halo=colour)
                    break
        return y + LANE

    def _axis(self, y: float) -> float:
        seconds = self._timeline.seconds
        step = next(each for each in (1, 2, 5, 10, 20, 50, 100, 200, 500) if seconds / each <= 14)
        for tick in range(0, int(seconds) + 1, step):
            self._text(self._x(tick), y + 14, f"{tick} s", anchor="middle", colour=MUTED, size=12)
        return y + 14

    def _event_lines(self, top: float, bottom: float) -> None:
        """A line for each event, and its number above: the numbers move aside where they would meet."""
        right = -1e9
        for number, (at, _) in enumerate(self._timeline.events, 1):
            x = self._x(at)
            label_x = max(x, right + 2 * CIRCLE_RADIUS + 4)
            right = label_x
            self._parts.append(
                f'<path d="M {label_x:.1f} {top - 8:.1f} L {x:.1f} {top:.1f} L {x:.1f} {bottom:.1f}" '
                f'stroke="{RED}" fill="none" stroke-dasharray="5 3"/>'
            )
            self._circle(label_x, top - 17, number)

    def _circle(self, x: float, y: float, number: int) -> None:
        self._texts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{CIRCLE_RADIUS}" fill="{RED}"/>')
        self._text(x, y + 4, str(number), anchor="middle", size=12, colour="white", weight="bold")
