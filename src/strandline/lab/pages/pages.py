"""The pages as Markdown, made from results of plays. Each page keeps its results, so that it can be checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.config.presets import PRESETS, Preset
from strandline.lab.check.failures import FAILURES
from strandline.lab.check.settings import CheckedSettings, checked
from strandline.lab.pages.played import PLAYS, PlayAll, Result, RowResults
from strandline.lab.pages.tables import ROW_PLAYS, TABLES, Cell, GuaranteeTable, named

_BEGIN: Final = "<!-- results, from which `strandline lab pages` makes this page:"
_END: Final = "-->"
_MADE: Final = (
    "`strandline lab pages` makes this page (`make docs`): each cell was played in simulated time on the real code of "
    "broker and client, with Kafka's default timeouts. What is broken is back after three minutes."
)
# Results by row, by play.
Results = Mapping[str, Mapping[str, Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPage:
    name: str
    rows: Mapping[str, CheckedSettings]
    plays: Callable[[str], tuple[str, ...]]  # of a row
    render: Callable[[Results], str]

    @property
    def work(self) -> list[tuple[str, str]]:
        """Everything that has to be played, as row and play."""
        return [(row, play) for row in self.rows for play in self.plays(row)]

    def text(self, results: Results) -> str:
        """Returns the page with its results."""
        lines = [
            f"{json.dumps({'row': row, 'play': play, **results[row][play]}, sort_keys=True)}"
            for row, play in self.work
        ]
        return "\n".join([self.render(results), _BEGIN, *lines, _END, ""])


def recorded(text: str) -> dict[str, dict[str, Result]]:
    """Returns the results that a page keeps."""
    results: dict[str, dict[str, Result]] = {}
    for line in text.partition(_BEGIN)[2].partition(_END)[0].strip().splitlines():
        result: dict[str, Any] = json.loads(line)
        row, play = result.pop("row"), result.pop("play")
        results.setdefault(row, {})[play] = result
    return results


def played(page: LabPage, play_all: PlayAll) -> dict[str, dict[str, Result]]:
    """Plays all that the page shows."""
    results: dict[str, dict[str, Result]] = {}
    found = play_all([(play, page.rows[row]) for row, play in page.work])
    for (row, play), result in zip(page.work, found, strict=True):
        results.setdefault(row, {})[play] = result
    return results


# Guarantees


def _guarantees(results: Results) -> str:
    lines = [
        "# Guarantees of producers and topics",
        "",
        _MADE,
        "",
        (
            "The documents that the failure lab plays summarize guarantees in three tables. A cell has what the "
            "document says, then what was found. Where the two differ, the cell says so."
        ),
    ]
    for table in TABLES:
        lines += ["", f"## {table.title}", "", f"From: {table.source}.", "", *_table(table, results)]
    lines += ["", "## The failures", "", *_legend(ROW_PLAYS), ""]
    return "\n".join(lines)


def _table(table: GuaranteeTable, results: Results) -> Iterator[str]:
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{' --- |' * len(table.columns)}"
    for row in table.rows:
        found = RowResults(results[f"{table.title}: {row.name}"])
        yield f"| {' | '.join([row.name, *(_cell(cell, found) for cell in row.cells)])} |"


def _cell(cell: Cell, results: RowResults) -> str:
    if cell.holds is None:
        return cell.said
    found = cell.found(results)
    if cell.holds(results):
        return f"{cell.said}<br>Found: {found}"
    return f"{cell.said}<br>**Found otherwise:** {found}"


def _legend(names: tuple[str, ...]) -> Iterator[str]:
    yield "| Name | Failure |"
    yield "| --- | --- |"
    for failure in FAILURES:
        if failure.name in names:
            several = " (several things fail)" if failure.is_several else ""
            yield f"| `{failure.name}` | {failure.title}{several} |"


# Presets


def _presets(results: Results) -> str:
    lines = [
        "# Presets, and what they survive",
        "",
        _MADE,
        "",
        (
            "`--preset` of `up`, `topics create`, `produce`, `consume` and `lab check` gives settings that belong "
            "together; `strandline configs presets NAME --part producer` prints them for any client."
        ),
        "",
        "## What each survives",
        "",
        f"| Failure | {' | '.join(PRESETS)} |",
        f"|{' --- |' * (len(PRESETS) + 1)}",
    ]
    for failure in FAILURES:
        cells = [_survived(RowResults(results[name]), failure.name) for name in PRESETS]
        if any(cells):
            lines.append(f"| `{failure.name}`: {failure.title} | {' | '.join(cells)} |")
    lines += ["", *(f"- {line}" for line in map(_verdict, PRESETS.values(), map(results.get, PRESETS)))]
    for each in PRESETS.values():
        lines += ["", f"## {each.name}", "", each.use, "", "| Part | Settings |", "| --- | --- |"]
        for part, settings in each.parts.items():
            pairs = "<br>".join(f"`{key}={value}`" for key, value in settings.items())
            lines.append(f"| {part} | {pairs} |")
        lines += ["", *(f"- {note}" for note in each.notes)]
    return "\n".join([*lines, ""])


def _survived(results: RowResults, failure: str) -> str:
    if not results.was_played(failure):
        return ""
    return "<br>".join(results.texts(failure)) or "survives it"


def _verdict(preset: Preset, results: Mapping[str, Result] | None) -> str:
    found = RowResults(results or {})
    single = [each.name for each in found.losing]
    together = [each.name for each in found.losing_together]
    twice = [each.name for each in found.duplicating]
    parts = [
        f"a single failure loses acknowledged records ({named(single)})"
        if single
        else "no single failure that was played loses acknowledged records"
    ]
    if together:
        parts.append(f"several at once do ({named(together)})")
    parts.append(f"records are written twice ({named(twice)})" if twice else "nothing is written twice")
    return f"**{preset.name}**: {', '.join(parts)}."


def preset_settings(preset: Preset) -> CheckedSettings:
    """Returns a preset as settings that can be checked."""
    return checked(
        CheckedSettings(
            producer=dict(preset.producer),
            consumer=dict(preset.consumer),
            topic=dict(preset.topic),
            cluster=dict(preset.cluster),
        )
    )


def _plays_of_preset(name: str) -> tuple[str, ...]:
    settings = preset_settings(PRESETS[name])
    return tuple(each.name for each in FAILURES if each.applies(settings))


PAGES: Final = (
    LabPage(
        name="guarantees.md",
        rows={f"{table.title}: {row.name}": row.settings for table in TABLES for row in table.rows},
        plays=lambda row: ROW_PLAYS,
        render=_guarantees,
    ),
    LabPage(
        name="presets.md",
        rows={name: preset_settings(each) for name, each in PRESETS.items()},
        plays=_plays_of_preset,
        render=_presets,
    ),
)
assert all(name in PLAYS for name in ROW_PLAYS)
