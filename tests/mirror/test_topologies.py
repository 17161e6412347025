"""The topologies of docs/operating/mirroring-topologies.md with three clusters, each as one file and one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess, running_broker
from tests.mirror.scene import Scene, scene, values_of

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


@pytest.fixture(scope="module")
def north() -> Iterator[BrokerProcess]:
    with running_broker(group_min_session_timeout_ms=1000) as broker:
        yield broker


@pytest.fixture
def three(east: BrokerProcess, west: BrokerProcess, north: BrokerProcess, tmp_path: Path) -> Iterator[Scene]:
    brokers = {"east": east.bootstrap, "west": west.bootstrap, "north": north.bootstrap}
    with scene(tmp_path, **brokers) as found:
        yield found


def topics(three: Scene, alias: str, part: str) -> set[str]:
    return {name for name in three.admin(alias).list_topics(timeout=30).topics if part in name}


def test_active_active_has_both_and_no_loop(three: Scene) -> None:
    for alias in ("east", "west"):
        three.create_topic(alias, "both", 1)
        three.produce(alias, "both", [f"of {alias}"])
    three.mirror(
        three.config({"east->west.enabled": "true", "west->east.enabled": "true", "topics": ".*both"})
    ).start()

    assert values_of(three.read("west", "east.both", 1)) == ["of east"]
    assert values_of(three.read("east", "west.both", 1)) == ["of west"]
    three.produce("east", "both", ["more"])
    assert values_of(three.read("west", "east.both", 2)) == ["of east", "more"]
    assert topics(three, "east", "both") == {"both", "west.both"}
    assert topics(three, "west", "both") == {"both", "east.both"}


def test_fan_out_gives_every_cluster_a_copy(three: Scene) -> None:
    three.create_topic("north", "news", 1)
    three.produce("north", "news", ["a", "b"])
    three.mirror(
        three.config({"north->east.enabled": "true", "north->west.enabled": "true", "topics": "news"})
    ).start()

    for alias in ("east", "west"):
        assert values_of(three.read(alias, "north.news", 2)) == ["a", "b"]


def test_two_flows_aggregate_into_topics_of_their_own_or_into_one(three: Scene) -> None:
    for alias in ("east", "west"):
        three.create_topic(alias, "sales", 1)
        three.create_topic(alias, "totals", 1)
        three.produce(alias, "sales", [f"sale of {alias}"])
        three.produce(alias, "totals", [f"total of {alias}"])
    flows = {"east->north.enabled": "true", "west->north.enabled": "true"}
    three.mirror(three.config({**flows, "topics": "sales"}), instance="apart").start()
    one_topic = {**flows, "topics": "totals", "replication.policy.class": IDENTITY}
    three.mirror(three.config(one_topic, "one-topic.properties"), instance="together").start()

    for alias in ("east", "west"):
        assert values_of(three.read("north", f"{alias}.sales", 1)) == [f"sale of {alias}"]
    assert sorted(values_of(three.read("north", "totals", 2))) == ["total of east", "total of west"]
    # Each flow tells that another one writes to its copy.
    three.produce("east", "totals", ["more of east"])
    three.read("north", "totals", 3)
    three.produce("west", "totals", ["more of west"])
    three.read("north", "totals", 4)
    kinds = {"foreign-records", "target-not-empty"}

    def is_told(flow: str) -> bool:
        file = str(three.directory / "one-topic.properties")
        status = three.command("status", "--config", file, "--flow", flow, "--json")
        assert status.returncode == 0, status.stderr
        return bool(kinds & {each["kind"] for each in json.loads(status.stdout)["events"]})

    wait_until(lambda: is_told("east->north") and is_told("west->north"), 60, "a flow tells nothing")


def test_chain_passes_on_and_names_the_way(three: Scene) -> None:
    three.create_topic("east", "passed", 1)
    three.produce("east", "passed", ["a"])
    three.mirror(
        three.config({"east->west.enabled": "true", "west->north.enabled": "true", "topics": ".*passed"})
    ).start()

    assert values_of(three.read("north", "west.east.passed", 1)) == ["a"]
    assert topics(three, "north", "passed") == {"west.east.passed"}
