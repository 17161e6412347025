"""`strandline lag` and the lag of groups over HTTP, against brokers and groups that are known to be behind."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess, running_broker
from tests.json_shapes import checked_lines
from tests.scraping import read, samples_of
from tests.system.commands import command


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number).encode())
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(30) == 0


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """For a group without members."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with running_broker(
        metrics=True, strandline_lag_stop_ms="500", strandline_lag_sample_interval_ms="100"
    ) as started:
        produce(started.bootstrap, "orders", 15_000)
        commit(started.bootstrap, "fine", "orders", 14_990)
        commit(started.bootstrap, "slow", "orders", 13_000)
        commit(started.bootstrap, "far", "orders", 10)
        commit(started.bootstrap, "done", "orders", 15_000)
        yield started


def lag(*arguments: str) -> tuple[int, str, str]:
    with command("lag", *arguments) as running:
        status = running.wait()
        return status, "\n".join(running.out), "\n".join(running.err)


def test_groups_without_members_are_shown_with_the_seeds_thresholds(broker: BrokerProcess) -> None:
    status, text, _ = lag("--bootstrap-server", broker.bootstrap)
    rows = {line.split()[0]: line.split()[1:3] for line in text.splitlines()[1:]}
    assert rows == {
        "far": ["ERR", "14990"],
        "fine": ["OK", "10"],
        "slow": ["WARN", "2000"],
        "done": ["OK", "0"],
    }
    assert status == 1, "a group is in error"
    assert lag("--bootstrap-server", broker.bootstrap, "slow")[0] == 0


def test_json_has_the_partitions(broker: BrokerProcess) -> None:
    _, text, _ = lag("--bootstrap-server", broker.bootstrap, "--json", "slow")
    (group,) = json.loads(text)["groups"]
    (partition,) = group["partitions"]
    assert (partition["topic"], partition["committed_offset"], partition["end_offset"]) == (
        "orders",
        13_000,
        15_000,
    )
    assert group["lag"] == partition["lag"] == 2_000


def test_a_group_that_is_not_there_is_said_to_be_so(broker: BrokerProcess) -> None:
    status, _, err = lag("--bootstrap-server", broker.bootstrap, "nobody")
    assert status == 4
    assert "there is no group nobody" in err


def test_a_command_and_a_webhook_are_called_when_the_status_changes(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    heard: list[dict[str, object]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        commit(broker.bootstrap, "changing", "orders", 15_000)
        log = tmp_path / "heard"
        watching = ("--watch", "--interval", "0.2", "--json", "--command", f"cat >> {log}; echo >> {log}")
        hook = ("--webhook", f"http://127.0.0.1:{server.server_port}/")
        with command("lag", "--bootstrap-server", broker.bootstrap, *watching, *hook, "changing") as running:
            running.wait_for('"status": "OK"')
            commit(broker.bootstrap, "changing", "orders", 12_000)
            wait_until(lambda: len(heard) >= 1)
            running.stop()
        assert (heard[0]["group"], heard[0]["previous_status"], heard[0]["status"]) == (
            "changing",
            "OK",
            "WARN",
        )
        assert json.loads(log.read_text().splitlines()[0]) == heard[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_lag_over_http_has_the_shape_of_burrow(broker: BrokerProcess) -> None:
    base = broker.metrics_url.removesuffix("/metrics") + "/v3/kafka"

    def get(path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(read(base + path)[2])
        return found

    (cluster_id,) = get("")["clusters"]
    assert {"far", "fine", "slow", "done"} <= set(get(f"/{cluster_id}/consumer")["consumers"])
    assert get(f"/{cluster_id}/topic/orders")["offsets"] == [15_000]
    assert "far" in get(f"/{cluster_id}/topic/orders/consumers")["consumers"]
    whole = get(f"/{cluster_id}/consumer/far/lag")
    assert whole["request"]["url"].endswith("/consumer/far/lag")
    status = whole["status"]
    assert (status["status"], status["totallag"], status["partition_count"]) == ("ERR", 14_990, 1)
    assert status["maxlag"]["current_lag"] == 14_990
    (partition,) = status["partitions"]
    assert set(partition) == {
        *("topic", "partition", "owner", "client_id", "status", "start", "end", "current_lag", "complete"),
    }
    assert get(f"/{cluster_id}/consumer/done/status")["status"]["partitions"] == []
    code, _, text = read(f"{base}/{cluster_id}/consumer/nobody/status")
    assert code == 404
    assert json.loads(text)["status"]["status"] == "NOTFOUND"


def test_a_consumer_without_commits_comes_to_be_stopped(broker: BrokerProcess) -> None:
    base = broker.metrics_url.removesuffix("/metrics") + "/v3/kafka"
    (cluster_id,) = json.loads(read(base)[2])["clusters"]

    def status() -> str:
        found = json.loads(read(f"{base}/{cluster_id}/consumer/fine/lag")[2])["status"]
        return str(found["partitions"][0]["status"])

    wait_until(lambda: status() == "STOP")


def test_a_probe_writes_reads_back_and_commits(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = ("--bootstrap-server", broker.bootstrap)
    # A fetch that waits for records does so for longer than a round may take.
    probe = ("probe", "-X", "fetch.max.wait.ms=20000", "--count", "3", "--interval", "0.1", "--json")
    monkeypatch.setenv("STRANDLINE_BOOTSTRAP_SERVERS", broker.bootstrap)
    with command(*probe) as running:
        assert running.wait() == 0
        looks = checked_lines("\n".join(running.out), probe)
    assert [each["offset"] for each in looks] == [0, 1, 2]
    assert all(each[f"{step}_ms"] > 0 for each in looks for step in ("produce", "read_back", "commit"))
    with command("probe", *bootstrap, "--interval", "0.1", "--metrics-port", "0") as running:
        url = running.wait_for("metrics are at", in_err=True).split()[-1]
        wait_until(
            lambda: dict(samples_of(url)).get("strandline_probe_records_total", [({}, 0.0)])[0][1] >= 2
        )
        found = samples_of(url)
        running.stop()
    assert found["strandline_probe_lost_total"] == [({}, 0.0)]
    assert {labels["step"] for labels, _ in found["strandline_probe_seconds_count"]} == {
        *("produce", "read_back", "commit"),
    }
    _, text, _ = lag(*bootstrap, "strandline-probe", "--json")
    assert json.loads(text)["groups"][0]["lag"] <= 1
