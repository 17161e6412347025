"""Commands about brokers, the quorum and transactions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strandline.testing import running_cluster
from strandline.testing.clusters import wait_until
from tests.system.cli.conftest import Ran
from tests.waiting import eventually

Run = Callable[..., Ran]
Json = Callable[..., Any]


@pytest.fixture(scope="module")
def three() -> Iterator[Any]:
    with running_cluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bootstrap(three: Any) -> str:
    found: str = three.bootstrap
    return found


def test_brokers_are_listed_with_their_leaders(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "spread", "-p", "3", "-r", "3")
    document = json_of("brokers")
    assert [each["node_id"] for each in document["brokers"]] == [1, 2, 3]
    assert sum(each["leaders"] for each in document["brokers"]) >= 3
    assert "BROKER  ADDRESS" in run("brokers").out


def test_log_directories_are_shown(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "on-disk", "-r", "3")
    json_of("produce", "on-disk", stdin=b"x" * 1000)
    found = json_of("log-dirs", "--topic", "on-disk")["log_dirs"]
    assert [each["broker"] for each in found] == [1, 2, 3]
    assert all(each["error"] is None for each in found)
    assert run("log-dirs", "--broker", "9").code == 4
    assert "on-disk" in run("log-dirs", "--replicas").out
    assert "DIRECTORY" in run("log-dirs").out


def test_features_are_shown_and_a_level_that_is_none_refused(run: Run, json_of: Json) -> None:
    names = [each["name"] for each in json_of("features")["features"]]
    assert "metadata.version" in names
    assert run("features", "metadata.version=9999", "-y").code == 1
    assert run("features", "metadata.version=new").code == 2
    assert run("features", "metadata.version=1").code == 1, "nobody can be asked"


def test_the_quorum_is_described(run: Run, json_of: Json) -> None:
    quorum = json_of("quorum", "describe")
    assert quorum["leader"] in (1, 2, 3)
    assert [each["node_id"] for each in quorum["voters"]] == [1, 2, 3]
    assert "leader" in run("quorum", "describe").out
    assert run("quorum", "remove", "9", "-y").code == 4
    assert run("quorum", "add", "9", "--listener", "CONTROLLER://localhost:1").code == 4
    assert run("quorum", "add", "9", "--listener", "nowhere").code == 2


def test_preferred_leaders_come_back_after_a_restart(run: Run, json_of: Json, three: Any) -> None:
    json_of("topics", "create", "drifting", "--replica-assignment", "1:2:3,2:3:1,3:1:2")
    node = three.nodes[1]
    node.kill()
    led = lambda: json_of("topics", "describe", "drifting", "--not-preferred")["topics"]  # noqa: E731
    wait_until(lambda: bool(led()))
    under = json_of("topics", "describe", "drifting", "--under-replicated")["topics"][0]
    assert len(under["partitions"]) == 3
    assert "not in sync: 2" in run("topics", "describe", "drifting").out
    node.start()
    wait_until(lambda: json_of("topics", "describe", "drifting", "--under-replicated")["topics"] == [])
    elected = json_of("elect-leaders", "--topic", "drifting")
    assert [each["partition"] for each in elected["partitions"] if each["elected"]] in ([1], [])
    wait_until(lambda: not led())
    assert run("elect-leaders", "--topic", "drifting").code == 0


def test_transactions_are_listed_described_and_aborted(run: Run, json_of: Json, bootstrap: str) -> None:
    json_of("topics", "create", "ledger")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("ledger", b"open")
    producer.flush(30)
    listed = json_of("transactions", "list", "--state", "Ongoing")["transactions"]
    assert [each["transactional_id"] for each in listed] == ["payer"]
    (described,) = json_of("transactions", "describe", "payer")["transactions"]
    assert described["partitions"] == [{"topic": "ledger", "partition": 0}]
    (one,) = json_of("producers", "--topic", "ledger")["producers"]
    assert (one["producer_id"], one["transaction_start_offset"]) == (described["producer_id"], 0)
    assert json_of("transactions", "hanging", "--older-than", "0s")["transactions"] == [], (
        "its coordinator knows it"
    )
    assert run("consume", "ledger", "-e", "--committed").out == ""
    json_of("transactions", "abort", "payer", "-y")
    assert json_of("transactions", "list", "--state", "Ongoing")["transactions"] == []
    assert run("transactions", "describe", "nobody").code == 4
    assert run("transactions", "abort", "nobody", "-y").code == 4
    assert run("transactions", "abort").code == 2
    assert run("transactions", "abort", "--topic", "ledger:0", "--start-offset", "7", "-y").code == 4
    assert run("producers").code == 2


def test_replicas_are_planned_moved_verified_and_their_throttle_goes(
    run: Run, json_of: Json, tmp_path: Path
) -> None:
    json_of("topics", "create", "moving", "--replica-assignment", "1:2,1:2,1:2")
    json_of("produce", "moving", stdin=b"x\n" * 1000)
    planned = run("reassign", "plan", "moving", "--without", "1")
    assert planned.code == 0
    file = tmp_path / "plan.json"
    file.write_text(planned.out)
    assert {node for each in json.loads(planned.out)["partitions"] for node in each["replicas"]} == {2, 3}
    assert json_of("reassign", "verify", str(file), code=1)["done"] is False
    assert run("reassign", "start", str(file)).code == 1, "nobody can be asked"
    started = json_of("reassign", "start", str(file), "--throttle", "50000000", "-y")
    assert (started["done"], started["moves"]) == (True, 3)
    assert json_of("reassign", "verify", str(file))["done"] is True
    assert json_of("reassign", "status")["partitions"] == []
    assert json_of("reassign", "cancel")["partitions"] == []
    left = [each["key"] for each in json_of("configs", "diff", "--topic", "moving")["configs"]]
    assert [key for key in left if "throttled" in key] == []
    (topic,) = json_of("topics", "describe", "moving")["topics"]
    assert all(1 not in each["replicas"] for each in topic["partitions"])
    assert len(run("consume", "moving", "--exit").out.splitlines()) == 1000


def test_observers_are_shown_with_how_far_they_are(run: Run, json_of: Json) -> None:
    json_of("topics", "create", "watched", "--replica-assignment", "1:2", "-c", "strandline.observers=rack-3")
    json_of("produce", "watched", stdin=b"x\n" * 100)

    def observers() -> list[dict[str, int]]:
        (topic,) = json_of("topics", "describe", "watched")["topics"]
        found: list[dict[str, int]] = topic["partitions"][0]["observers"]
        return found

    wait_until(lambda: observers() == [{"node": 3, "bytes_behind": 0}], 30)
    assert "observer 3" in run("topics", "describe", "watched").out


def throttles(json_of: Json, *which: str) -> dict[str, str]:
    found = json_of("configs", "diff", *which)["configs"]
    return {each["key"]: each["value"] for each in found if "throttled" in each["key"]}


def test_the_end_of_a_reassignment_leaves_the_throttles_of_others(
    run: Run, json_of: Json, tmp_path: Path
) -> None:
    files = []
    for name, before, after in (("ours", "1:2", [3, 2]), ("others", "1:3", [1, 2])):
        json_of("topics", "create", name, "--replica-assignment", before)
        files.append(tmp_path / f"{name}.json")
        plan = {"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": after}]}
        files[-1].write_text(json.dumps(plan))
        started = json_of("reassign", "start", str(files[-1]), "--throttle", "9000000", "--no-wait", "-y")
        assert started["done"] is False
    json_of("configs", "set", "leader.replication.throttled.replicas=*", "--topic", "others")
    wait_until(lambda: run("reassign", "verify", str(files[0]), "--preserve-throttles").code == 0, 30)
    assert throttles(json_of, "--topic", "ours") == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
    }
    assert json_of("reassign", "verify", str(files[0]))["done"] is True
    wait_until(lambda: throttles(json_of, "--topic", "ours") == {}, 30)
    assert throttles(json_of, "--topic", "others")["leader.replication.throttled.replicas"] == "*"
    assert len(throttles(json_of, "--broker", "3")) == 2, "the other one still needs it"
    json_of("configs", "set", "leader.replication.throttled.replicas=0:1,0:3", "--topic", "others")
    wait_until(lambda: run("reassign", "verify", str(files[1])).code == 0, 30)
    # The broker that is asked may be a moment behind the one that changed them.
    wait_until(lambda: throttles(json_of, "--topic", "others") == {}, 30)
    wait_until(lambda: throttles(json_of, "--broker", "3") == throttles(json_of, "--broker", "1") == {}, 30)


def test_a_reassignment_under_way_is_shown_cancelled_and_resumed(
    run: Run, json_of: Json, tmp_path: Path
) -> None:
    json_of("topics", "create", "slow", "--replica-assignment", "1:2")
    json_of("produce", "slow", stdin=(b"x" * 1000 + b"\n") * 3000)
    file = tmp_path / "plan.json"
    plan = {"version": 1, "partitions": [{"topic": "slow", "partition": 0, "replicas": [1, 3]}]}
    file.write_text(json.dumps(plan))
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(plan).replace("[1, 3]", "[1, 9]"))
    refused = run("reassign", "start", str(wrong), "--throttle", "100000", "-y")
    assert (refused.code, "there is no broker 9; there are: 1, 2, 3" in refused.err) == (4, True)
    assert throttles(json_of, "--topic", "slow") == {}
    begin = ("reassign", "start", str(file), "--throttle", "100000", "--no-wait", "-y")
    json_of(*begin)
    (moving,) = json_of("reassign", "status")["partitions"]
    assert (moving["topic"], moving["adding"]) == ("slow", [3])
    assert "slow" in run("reassign", "status").out
    assert json_of("reassign", "verify", str(file), code=1)["partitions"][0]["state"] == "moving"
    assert run("reassign", "cancel", str(file)).code == 1, "nobody can be asked"
    assert json_of("reassign", "cancel", str(file), "-y")["partitions"] == [{"topic": "slow", "partition": 0}]
    (topic,) = json_of("topics", "describe", "slow")["topics"]
    assert topic["partitions"][0]["replicas"] == [1, 2]
    assert throttles(json_of, "--topic", "slow") == throttles(json_of, "--broker", "3") == {}
    json_of(*begin)
    resumed = ("reassign", "start", str(file), "-y")  # waits for the one that is under way
    json_of("configs", "set", "follower.replication.throttled.rate=90000000", "--broker", "3")
    json_of("configs", "set", "leader.replication.throttled.rate=90000000", "--broker", "1")
    json_of("configs", "set", "leader.replication.throttled.rate=90000000", "--broker", "2")
    assert json_of(*resumed)["done"] is True
    assert json_of("reassign", "verify", str(file))["done"] is True


def test_a_replication_factor_is_raised(run: Run, json_of: Json, tmp_path: Path) -> None:
    json_of("topics", "create", "safer", "-p", "2", "-r", "1")
    plan = json_of("reassign", "plan", "safer", "-r", "3")
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan["proposed"]))
    json_of("reassign", "start", str(file), "-y")

    def are_in_sync() -> bool:
        (topic,) = json_of("topics", "describe", "safer")["topics"]
        return [len(each["in_sync"]) for each in topic["partitions"]] == [3, 3]

    eventually(are_in_sync)  # each broker hears of it in its own time


def test_reassignments_that_cannot_be_are_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text('{"partitions": [{"topic": "t"}]}')
    assert run("reassign", "start", str(file)).code == 2
    file.write_text('{"version": 1, "partitions": [{"topic": "nowhere", "partition": 0, "replicas": [1]}]}')
    assert run("reassign", "start", str(file), "-y").code == 4
    assert run("reassign", "verify", str(file)).code == 1
    assert run("reassign", "plan", "--brokers", "1,9").code == 4
    assert run("reassign", "plan", "--brokers", "one").code == 2
