"""`strandline sizing` computes what it says."""

from __future__ import annotations

import json

import pytest

from strandline.cli.main import main


def sized(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert main(["sizing", "--json", *options]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_largest_of_the_three_formulas_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert sized(capsys, "--write", "100", "--retention", "1h")["partitions"] == 10
    assert sized(capsys, "--write", "100", "--retention", "1h", "--consumers", "40")["partitions"] == 40
    assert sized(capsys, "--write", "10", "--retention", "7d")["partitions"] == 121
    assert sized(capsys, "--write", "10", "--retention", "7d", "--partition-size", "100")["partitions"] == 61


def test_disks_are_filled_to_seventy_percent(capsys: pytest.CaptureFixture[str]) -> None:
    found = sized(capsys, "--write", "10", "--retention", "7d", "--disk", "1000")
    assert (found["disk_bytes"], found["brokers"]) == (18_144_000_000_000, 26)


def test_there_are_as_many_brokers_as_replicas(capsys: pytest.CaptureFixture[str]) -> None:
    assert sized(capsys, "--write", "1", "--retention", "1h")["brokers"] == 3
    small = sized(capsys, "--write", "1", "--retention", "1h", "--use", "development")
    assert (small["brokers"], small["acks"], small["min_insync_replicas"]) == (1, "1", 1)


def test_the_arithmetic_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizing", "--write", "100"]) == 0
    assert "partitions by throughput: 100 MB/s / 10 MB/s each = 10" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["sizing", "--write", "-1"])
