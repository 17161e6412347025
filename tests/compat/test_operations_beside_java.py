"""`strandline` and Apache Kafka's tools in turn: what one of them begins, the other sees, goes on with and ends.

Voters of the quorum, reassignments, hanging transactions, delegation tokens and measurements.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.base.ids import uuid_text
from strandline.cli.main import main
from strandline.testing import running_broker
from strandline.testing.clusters import running_cluster
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.record_batch import TRANSACTIONAL_FLAG
from tests.batches import batch
from tests.compat.wire import WireClient
from tests.json_shapes import checked_lines
from tests.oracle.kafka_tools import KafkaTools
from tests.system.cluster import story
from tests.system.cluster.controllers import WAIT_SECONDS_MAX, running_controllers
from tests.system.cluster.story import create, shown
from tests.waiting import eventually

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Ours = Callable[..., Any]


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Ours:
    """Runs one of our commands and returns its JSON; None where it prints none."""

    def run(*given: object, code: int = 0) -> Any:
        arguments = [*map(str, given), "--json"]
        capfd.readouterr()
        assert main(arguments) == code, capfd.readouterr().err
        out = capfd.readouterr().out
        return checked_lines(out, arguments)[0] if out else None

    return run


def test_voters_are_added_and_removed_by_either(ours: Ours, kafka_tools: KafkaTools) -> None:
    with running_controllers() as controllers:
        at_broker = ("--bootstrap-server", controllers.broker.bootstrap)
        listener = f"CONTROLLER://127.0.0.1:{controllers.ports[2]}"
        # A controller that has not caught up yet is refused: the command is typed again.
        controllers.until_added(2)
        assert controllers.voters() == [1, 2]
        second = ours("quorum", "remove", 2, "--yes", *at_broker)
        assert second == {"node_id": 2, "directory_id": uuid_text(controllers.directory_id(2))}
        described = kafka_tools.run("MetadataQuorumCommand", *at_broker, "describe", "--status").stdout
        assert uuid_text(controllers.directory_id(2)) not in _voters(described)
        eventually(lambda: _adds(controllers.broker.bootstrap, listener), WAIT_SECONDS_MAX)
        described = kafka_tools.run("MetadataQuorumCommand", *at_broker, "describe", "--status").stdout
        assert uuid_text(controllers.directory_id(2)) in _voters(described)
        assert listener in _voters(described)
        removal = ("remove-controller", "--controller-id", 2)
        directory = ("--controller-directory-id", uuid_text(controllers.directory_id(2)))
        told = kafka_tools.run("MetadataQuorumCommand", *at_broker, *removal, *directory)
        assert "Removed" in told.stdout, told.stdout + told.stderr
        eventually(
            lambda: [each["node_id"] for each in ours("quorum", "describe", *at_broker)["voters"]] == [1],
            WAIT_SECONDS_MAX,
        )
        ours("quorum", "remove", 2, "--yes", *at_broker, code=4)


def _adds(bootstrap: str, listener: str) -> bool:
    return main(["quorum", "add", "2", "--listener", listener, "-b", bootstrap]) == 0


def _voters(described: str) -> str:
    found = re.search(r"CurrentVoters:\s+(.*)", described)
    assert found is not None, described
    return found[1]


def test_a_reassignment_is_cancelled_by_the_other(
    ours: Ours, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    partitions = [{"topic": "moved", "partition": 0, "replicas": [1, 3]}]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    with running_cluster(nodes=3) as cluster:
        create(cluster, "moved", [[1, 2]])
        awake = ("--bootstrap-server", ",".join(cluster.node(each).bootstrap for each in (1, 2)))
        command = ("ReassignPartitionsCommand", *awake, "--reassignment-json-file", file)
        with story.paused(cluster.node(3)):
            assert "Successfully started" in kafka_tools.run(*command, "--execute").stdout
            (moving,) = ours("reassign", "status", *awake)["partitions"]
            assert (moving["topic"], moving["adding"], moving["removing"]) == ("moved", [3], [2])
            assert ours("reassign", "cancel", "--yes", *awake)["partitions"] == [
                {"topic": "moved", "partition": 0}
            ]
            listed = kafka_tools.run("ReassignPartitionsCommand", *awake, "--list").stdout
            assert "No partition reassignments found" in listed
            eventually(lambda: shown(cluster, "moved").replicas == (1, 2))
            ours("reassign", "start", file, "--no-wait", "--yes", *awake)
            listed = kafka_tools.run("ReassignPartitionsCommand", *awake, "--list").stdout
            assert re.search(r"moved-0: replicas: 1,3,2\. adding: 3\. removing: 2\.", listed), listed
            gone = kafka_tools.run(*command, "--cancel", "--preserve-throttles").stdout
            assert "Successfully cancelled partition reassignment for: moved-0" in gone, gone
            assert ours("reassign", "status", *awake)["partitions"] == []


def test_hanging_transactions_are_found_alike_and_aborted_by_ours(
    ours: Ours, kafka_tools: KafkaTools
) -> None:
    """A batch that no coordinator knows of: nothing but these tools ends its transaction."""
    with running_broker(transaction_partition_verification_enable="false") as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        producer_id = _hang(broker.bootstrap, "hung")
        finding = ("find-hanging", "--topic", "hung", "--max-transaction-timeout", 1)
        rows = kafka_tools.run("TransactionsCommand", *at, *finding).succeeded().lines
        java = next(line.split() for line in rows if line.startswith("hung"))
        (found,) = ours("transactions", "hanging", "--older-than", "1m", *at, code=1)["transactions"]
        assert (found["topic"], found["partition"], found["producer_id"]) == ("hung", 0, producer_id)
        assert java[:3] == ["hung", "0", str(producer_id)]
        ours("transactions", "abort", "--topic", "hung:0", "--start-offset", 0, "--yes", *at)
        rows = kafka_tools.run("TransactionsCommand", *at, *finding).succeeded().lines
        assert not any(line.startswith("hung") for line in rows)
        assert ours("transactions", "hanging", "--older-than", "1m", *at)["transactions"] == []


def _hang(bootstrap: str, topic: str) -> int:
    """Leaves a transaction open, ten minutes ago; its producer id."""
    with WireClient(bootstrap) as client:
        asked = (MetadataRequestTopic(name=topic),)
        client.call(MetadataRequest(topics=asked), 9)
        client.call(FindCoordinatorRequest(coordinator_keys=("forgetful",), key_type=1), 4)
        init = InitProducerIdRequest(transactional_id="forgetful", transaction_timeout_ms=60_000)
        deadline = time.monotonic() + 30
        while (made := _call(client, init, 4)).error_code:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        records = batch(
            codec=TRANSACTIONAL_FLAG,
            producer_id=made.producer_id,
            epoch=made.producer_epoch,
            sequence=0,
            timestamp=int(time.time() * 1000) - 600_000,
        )
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
        request = ProduceRequest(transactional_id="forgetful", acks=-1, timeout_ms=5000, topic_data=(data,))
        assert _call(client, request, 9).responses[0].partition_responses[0].error_code == 0
        return int(made.producer_id)


def _call(client: WireClient, request: Any, version: int) -> Any:
    return client.call(request, version)


def test_tokens_of_one_are_the_tokens_of_the_other(ours: Ours, kafka_tools: KafkaTools) -> None:
    with running_broker(security="SASL_PLAINTEXT", delegation_token_secret_key="shared") as broker:
        assert broker.security is not None
        properties = broker.security.write_client_properties(broker.bootstrap)
        at = ("--bootstrap-server", broker.bootstrap, "--command-config", properties)
        # Without an owner the tool asks for the tokens of nobody.
        describe = ("--describe", "--owner-principal", "User:alice")
        mine = ours("tokens", "create", "--renewer", "bob", *at)
        described = kafka_tools.run("DelegationTokenCommand", *at, *describe).stdout
        row = next(line.split() for line in described.splitlines() if line.startswith(mine["token_id"]))
        assert row[1] == mine["hmac"]
        assert "User:alice" in row
        assert "[User:bob]" in row
        kafka_tools.run(
            *("DelegationTokenCommand", *at, "--expire"),
            *("--expiry-time-period", "-1", "--hmac", mine["hmac"]),
        )
        assert ours("tokens", "list", *at)["tokens"] == []
        made = kafka_tools.run(
            "DelegationTokenCommand", *at, "--create", "--max-life-time-period", "-1"
        ).stdout
        java = next(line.split() for line in made.splitlines() if "User:alice" in line)
        assert [each["token_id"] for each in ours("tokens", "list", *at)["tokens"]] == [java[0]]
        ours("tokens", "renew", java[1], *at)
        ours("tokens", "expire", java[1], *at)
        assert java[0] not in kafka_tools.run("DelegationTokenCommand", *at, *describe).stdout


def test_measurements_exchange_records_with_the_other_tool(ours: Ours, kafka_tools: KafkaTools) -> None:
    with running_broker() as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        ours("topics", "create", "measured", *at)
        assert ours("perf", "produce", "measured", "-n", 3000, "--size", 100, *at)["bytes"] == 300_000
        read = kafka_tools.run_alone("ConsumerPerformance", *at, "--topic", "measured", "--num-records", 3000)
        figures = [each.strip() for each in read.lines[-1].split(",")]
        assert figures[4] == "3000", read.stdout + read.stderr
        assert float(figures[2]) == pytest.approx(300_000 / 1024**2, abs=0.001)
        written = kafka_tools.run_alone(
            *("ProducerPerformance", *at, "--topic", "measured", "--num-records", 2000),
            *("--record-size", 50, "--throughput", -1),
        )
        assert "2000 records sent" in written.stdout, written.stdout + written.stderr
        measured = ours("perf", "consume", "measured", *at)
        assert (measured["records"], measured["bytes"]) == (5000, 400_000)
