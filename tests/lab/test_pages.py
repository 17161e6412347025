"""The pages that the lab makes are those that their results give, and their results are those of today's code.

`make test` plays a few of the results again, `make soak` all of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strandline.cli.exit_codes import USAGE
from strandline.cli.main import main
from strandline.lab.pages.pages import PAGES, LabPage, recorded
from strandline.lab.pages.played import play_one

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"
FEW = {
    "guarantees.md": [
        ("Producer guarantees: acks=1", "leader-crashes"),
        ("Durability guarantees: acks=all, min.isr=1", "copies"),
        ("acks and min.insync.replicas: all, 2, 3", "follower-crashes"),
    ],
    "presets.md": [("high-throughput", "in-sync-replicas-crash"), ("critical", "consumer-crashes")],
}

pytestmark = pytest.mark.timeout(1800 if IS_SOAK else 400)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_made_from_its_results_and_not_by_hand(page: LabPage) -> None:
    text = (REFERENCE / page.name).read_text()
    assert page.text(recorded(text)) == text, "`make docs` makes it again"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_results_of_a_page_are_those_of_the_code(page: LabPage) -> None:
    results = recorded((REFERENCE / page.name).read_text())
    for row, play in page.work if IS_SOAK else FEW[page.name]:
        assert play_one(play, page.rows[row]) == results[row][play], (
            f"{row}, {play}: `make docs` plays it again"
        )


def test_directory_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "pages", "--write", "/nowhere"]) == USAGE
    assert "there is no directory /nowhere" in capsys.readouterr().err
