"""The tour in the guide shows what the commands print."""

from __future__ import annotations

from tests.docs.output import steady
from tests.system.cli.tour import PAGE, commands, run_all


def test_the_tour_shows_the_output_of_the_commands() -> None:
    shown = commands(PAGE.read_text())
    assert len(shown) > 15
    found = run_all([line for line, _ in shown])
    for (line, expected), printed in zip(shown, found, strict=True):
        assert steady(printed) == steady(expected), f"{line}: run python -m tests.system.cli.tour"
