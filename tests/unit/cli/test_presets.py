"""`configs presets`, and how a preset is laid below what a command is given."""

from __future__ import annotations

import argparse
import json

import pytest

from strandline.cli.configs import presets as command
from strandline.cli.exit_codes import DONE, NOT_FOUND, USAGE
from strandline.cli.main import main
from strandline.cli.output.document import mismatch
from strandline.cli.presets import broker_part
from strandline.config.presets import PRESETS


def test_presets_are_listed_shown_and_printed_as_properties(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configs", "presets"]) == DONE
    listed = capsys.readouterr().out
    assert all(name in listed for name in PRESETS)
    assert main(["configs", "presets", "critical", "--json"]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert mismatch(document, command.SHAPE) is None
    assert document["presets"][0]["producer"]["acks"] == "all"
    assert main(["configs", "presets", "high-throughput", "--part", "producer"]) == DONE
    assert "linger.ms=10" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (["configs", "presets", "safe"], NOT_FOUND, "there is no preset safe: there are critical"),
        (["configs", "presets", "--part", "topic"], USAGE, "--part needs the NAME of a preset"),
    ],
)
def test_mistakes_are_told(
    typed: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed) == code
    assert said in capsys.readouterr().err


def test_too_few_nodes_lower_what_needs_more_and_say_so() -> None:
    settings, notes = broker_part(argparse.Namespace(preset="critical"), 1)
    assert settings["default.replication.factor"] == settings["min.insync.replicas"] == "1"
    assert len(notes) == 4
    assert "--nodes 3" in notes[-1]
    settings, notes = broker_part(argparse.Namespace(preset="critical"), 3)
    assert (settings["default.replication.factor"], settings["min.insync.replicas"]) == ("3", "2")
    assert notes == []
    assert broker_part(argparse.Namespace(preset=None), 1) == ({}, [])
