"""Draws bar charts as SVG without a library: a few kilobytes each, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 760
_LABEL_WIDTH = 210
_VALUE_WIDTH = 110
_BAR_HEIGHT = 13
_GROUP_GAP = 10
_TOP = 58
_BOTTOM = 16
_COLOURS = ("#1f7a8c", "#b0b7bf", "#e08e45")
_TEXT = "#222222"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value with its lowest and highest measurement."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Bars that belong together, one for each series; None for a series without a value."""

    label: str
    bars: Sequence[Bar | None]


def grouped_bars(title: str, unit: str, series: Sequence[str], groups: Sequence[Group]) -> str:
    """Returns a chart of horizontal bars, with whiskers from the lowest to the highest round."""
    highest = max((bar.high for group in groups for bar in group.bars if bar), default=1.0) or 1.0
    scale = (_WIDTH - _LABEL_WIDTH - _VALUE_WIDTH) / highest
    group_height = _BAR_HEIGHT * len(series) + _GROUP_GAP
    height = _TOP + group_height * len(groups) + _BOTTOM
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="{_TEXT}">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="15" font-weight="600">{escape(title)}</text>',
    ]
    parts += _legend(series, unit)
    y = float(_TOP)
    for group in groups:
        middle = y + _BAR_HEIGHT * len(series) / 2 + 4
        parts.append(
            f'<text x="{_LABEL_WIDTH - 8}" y="{middle:.0f}" text-anchor="end">{escape(group.label)}</text>'
        )
        for number, bar in enumerate(group.bars):
            if bar is not None:
                parts += _bar(bar, y + number * _BAR_HEIGHT, scale, _COLOURS[number])
        y += group_height
    return "\n".join([*parts, "</svg>\n"])


def _legend(series: Sequence[str], unit: str) -> list[str]:
    parts = []
    x = 12
    for number, name in enumerate(series):
        parts.append(f'<rect x="{x}" y="34" width="11" height="11" fill="{_COLOURS[number]}"/>')
        parts.append(f'<text x="{x + 16}" y="44">{escape(name)}</text>')
        x += 34 + 7 * len(name)
    parts.append(f'<text x="{_WIDTH - 12}" y="44" text-anchor="end">{escape(unit)}</text>')
    return parts


def _bar(bar: Bar, y: float, scale: float, colour: str) -> list[str]:
    width, low, high = (max(value * scale, 1.0) for value in (bar.value, bar.low, bar.high))
    middle = y + _BAR_HEIGHT / 2
    return [
        f'<rect x="{_LABEL_WIDTH}" y="{y + 1:.1f}" width="{width:.1f}" height="{_BAR_HEIGHT - 2}" fill="{colour}"/>',
        f'<path d="M{_LABEL_WIDTH + low:.1f} {middle:.1f}H{_LABEL_WIDTH + high:.1f}" stroke="{_TEXT}"/>',
        (
            f'<text x="{_LABEL_WIDTH + max(width, high) + 5:.1f}" y="{middle + 4:.1f}" font-size="11">'
            f"{short(bar.value)}</text>"
        ),
    ]


def short(value: float) -> str:
    """Returns a number with three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
