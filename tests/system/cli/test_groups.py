"""`strandline groups`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from strandline.cli.output.text import moment
from tests.record_times import recent_ms
from tests.system.cli.conftest import Ran

Run = Callable[..., Ran]
Json = Callable[..., Any]
BASE_MS = recent_ms()


@pytest.fixture(autouse=True)
def orders(json_of: Json) -> None:
    """A topic of two partitions with ten records each, a second apart."""
    if json_of("topics", "create", "orders", "-p", "2", "--if-not-exists")["topics"][0]["created"]:
        rows = b"".join(
            b'{"value":"%d","partition":%d,"timestamp":%d}\n' % (i, partition, BASE_MS + i * 1000)
            for i in range(10)
            for partition in (0, 1)
        )
        json_of("produce", "orders", "--from-json", "--keep-partitions", stdin=rows)


@contextmanager
def member(bootstrap: str, group: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.consume(1, 30)
    try:
        yield consumer
    finally:
        consumer.close()


def reset(json_of: Json, group: str, *options: str) -> list[int]:
    document = json_of("groups", "reset-offsets", group, *options, "-y")
    return [each["after"] for each in document["partitions"]]


def test_offsets_are_reset_in_every_mode(json_of: Json, run: Run, tmp_path: Path) -> None:
    assert reset(json_of, "g", "--topic", "orders", "--to-latest") == [10, 10]
    assert reset(json_of, "g", "--to-earliest") == [0, 0]
    assert reset(json_of, "g", "--to-offset", "4") == [4, 4]
    assert reset(json_of, "g", "--topic", "orders:1", "--shift-by", "2") == [6]
    assert reset(json_of, "g", "--shift-by=-5") == [0, 1]
    assert reset(json_of, "g", "--shift-by=100") == [10, 10]
    assert reset(json_of, "g", "--to-datetime", moment(BASE_MS + 7000)) == [7, 7]
    assert reset(json_of, "g", "--by-duration", "PT30M") == [10, 10]
    assert reset(json_of, "g", "--to-datetime", "7d") == [0, 0]
    assert reset(json_of, "g", "--to-current") == [0, 0]
    exported = run("groups", "reset-offsets", "g", "--to-offset", "3", "--export").out
    assert exported == '"orders",0,3\n"orders",1,3\n'
    (tmp_path / "offsets.csv").write_text(exported)
    assert reset(json_of, "g", "--from-file", str(tmp_path / "offsets.csv")) == [3, 3]
    (group,) = json_of("groups", "describe", "g")["groups"]
    assert [(each["committed"], each["lag"]) for each in group["partitions"]] == [(3, 7), (3, 7)]
    (lagging,) = json_of("groups", "lag", "g")["groups"]
    assert (lagging["lag"], lagging["status"], len(lagging["partitions"])) == (14, "OK", 2)
    assert json_of("lag", "g", "--critical", "13", code=1)["groups"][0]["status"] == "ERR"


def test_a_dry_run_resets_nothing(json_of: Json, run: Run) -> None:
    reset(json_of, "dry", "--topic", "orders", "--to-offset", "5")
    document = json_of("groups", "reset-offsets", "dry", "--to-earliest", "--dry-run")
    assert document["dry_run"] is True
    ran = run("groups", "reset-offsets", "dry", "--to-earliest")
    assert (ran.code, "BEFORE  AFTER" in ran.out, "add --yes" in ran.err) == (1, True, True)
    (group,) = json_of("groups", "describe", "dry")["groups"]
    assert [each["committed"] for each in group["partitions"]] == [5, 5]


def test_a_group_that_lives_is_shown_and_neither_reset_nor_deleted(
    json_of: Json, run: Run, bootstrap: str
) -> None:
    with member(bootstrap, "alive") as _:
        (group,) = json_of("groups", "members", "alive")["groups"]
        assert len(group["members"]) == 1
        assert len(group["members"][0]["assignment"]) == 2
        for command in (
            ["groups", "reset-offsets", "alive", "--topic", "orders", "--to-earliest", "-y"],
            ["groups", "delete", "alive", "-y"],
            ["groups", "clone", "g-source", "alive", "-y"],
        ):
            if command[1] == "clone":
                reset(json_of, "g-source", "--topic", "orders", "--to-latest")
            ran = run(*command)
            assert (ran.code, "1 member" in ran.err, "stop them first" in ran.err) == (1, True, True), ran.err
        assert "alive" in run("groups", "list", "--state", "Stable").out


def test_offsets_are_cloned_and_groups_deleted(json_of: Json, run: Run) -> None:
    reset(json_of, "one", "--topic", "orders", "--to-offset", "2")
    document = json_of("groups", "clone", "one", "two")
    assert [each["offset"] for each in document["partitions"]] == [2, 2]
    assert run("groups", "clone", "one", "two").code == 1, "two exists, and nobody can be asked"
    assert json_of("groups", "delete", "one", "--topic", "orders", "-y")["topics"] == ["orders"]
    assert json_of("groups", "delete", "two", "-y")["groups"] == ["two"]
    assert "two" not in [each["group"] for each in json_of("groups", "list")["groups"]]


@pytest.mark.parametrize("command", ["describe", "members", "lag", "delete"])
def test_an_unknown_group_is_an_error(command: str, run: Run) -> None:
    ran = run("groups", command, "nobody")
    assert (ran.code, ran.err.startswith("strandline: there is no group nobody")) == (4, True)


def test_offsets_that_cannot_be_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("orders,0,1\norders,zero,1\n")
    ran = run("groups", "reset-offsets", "g", "--from-file", str(tmp_path / "bad.csv"))
    assert (ran.code, "line 2" in ran.err) == (2, True)
    assert run("groups", "reset-offsets", "g", "--topic", "orders:7", "--to-latest").code == 4
    assert run("groups", "reset-offsets", "g", "--topic", "orders:x", "--to-latest").code == 2
    assert run("groups", "reset-offsets", "nobody", "--to-latest").code == 4
