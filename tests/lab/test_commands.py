"""`strandline lab` as it is typed: its JSON, its pages, and what it says about mistakes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from strandline.cli.exit_codes import DONE, FAILED, NOT_FOUND, USAGE
from strandline.cli.lab import list as list_command
from strandline.cli.lab import run as run_command
from strandline.cli.lab import show as show_command
from strandline.cli.main import main
from strandline.cli.output.document import mismatch
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import names
from strandline.lab.scenarios.leader_failure.configurations import acks_1

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "lab.md"


def test_every_scenario_is_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "list", "--json"]) == DONE
    listed = json.loads(capsys.readouterr().out)
    assert mismatch(listed, list_command.SHAPE) is None
    assert [each["name"] for each in listed["scenarios"]] == names()
    for name in names():
        assert main(["lab", "show", name, "--json"]) == DONE
        shown = json.loads(capsys.readouterr().out)
        assert mismatch(shown, show_command.SHAPE) is None
        assert "lab." in shown["steps"]


def test_run_prints_what_the_guide_shows(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```console\n\$ strandline (lab run [^\n]*)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert blocks
    for command, output in blocks:
        assert main(command.split()) == DONE
        assert capsys.readouterr().out.rstrip() == output.rstrip()


class Scripts(HTMLParser):
    """Collects what a page refers to and the data that is inside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.data = ""
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        self._is_data = ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data += data


def test_page_has_the_run_inside_and_needs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "run", "acks-1", "--json", "--html", str(tmp_path)]) == DONE
    printed = json.loads(capsys.readouterr().out)
    assert mismatch(printed, run_command.SHAPE) is None
    page = Scripts()
    page.feed((tmp_path / "acks-1.html").read_text())
    assert json.loads(page.data) == printed
    assert page.references == []


def test_outcome_that_is_not_the_expected_one_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = replace(acks_1.SCENARIO, expected=Outcome(acknowledged="0-1000", leader=2, leader_epoch=1))
    monkeypatch.setattr(acks_1, "SCENARIO", wrong)
    assert main(["lab", "run", "acks-1"]) == FAILED
    assert "lost: none was expected, 1000 was found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        (["lab", "run", "ackz-1"], NOT_FOUND, "there is no scenario ackz-1: did you mean acks-1"),
        (["lab", "show", "?"], NOT_FOUND, "there is no scenario ?: `strandline lab list` names them"),
        (["lab", "run"], USAGE, "name scenarios, or say --all"),
        (
            ["lab", "run", "acks-1", "--html", "/proc/nowhere"],
            USAGE,
            "pages cannot be written to /proc/nowhere",
        ),
    ],
)
def test_mistakes_are_told(
    typed: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed) == code
    assert message in capsys.readouterr().err
