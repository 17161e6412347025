"""Apache Kafka's command line tools do their work on the broker."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.clients.confluent_kafka_client import ConfluentKafkaClient
from tests.compat.clients.interface import eventually
from tests.compat.records import BASE_TIMESTAMP_MS, CODECS, Sample, numbered
from tests.compat.server import CreateTopic, Server
from tests.oracle.kafka_tools import KafkaTools, ToolResult

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Run = Callable[..., ToolResult]


@pytest.fixture
def run(kafka_tools: KafkaTools, server: Server) -> Run:
    """Run a tool on the broker, whatever comes of it."""

    def run(tool: str, *args: object, stdin: str = "") -> ToolResult:
        return kafka_tools.run(tool, "--bootstrap-server", server.bootstrap, *args, stdin=stdin)

    return run


@pytest.fixture
def client(probe: ConfluentKafkaClient) -> ConfluentKafkaClient:
    return probe


class TestTopicCommand:
    def test_topic_is_created_listed_described_and_deleted(self, run: Run, topic: str) -> None:
        created = run(
            "TopicCommand",
            "--create",
            "--topic",
            topic,
            "--partitions",
            3,
            "--config",
            "segment.bytes=2000000",
        ).succeeded()
        assert created.lines == [f"Created topic {topic}."]
        eventually(lambda: run("TopicCommand", "--list").succeeded().lines, lambda listed: topic in listed)
        described = run("TopicCommand", "--describe", "--topic", topic).succeeded().lines
        assert re.match(
            rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: 1\t", described[0]
        )
        assert "segment.bytes=2000000" in described[0]
        assert [re.findall(r"Partition: (\d+)", line) for line in described[1:]] == [["0"], ["1"], ["2"]]
        run("TopicCommand", "--delete", "--topic", topic).succeeded()
        eventually(
            lambda: run("TopicCommand", "--list").succeeded().lines, lambda listed: topic not in listed
        )

    def test_partitions_are_added(self, run: Run, create: CreateTopic, topic: str) -> None:
        create(topic, partitions=2)
        run("TopicCommand", "--alter", "--topic", topic, "--partitions", 4).succeeded()
        eventually(
            lambda: run("TopicCommand", "--describe", "--topic", topic).succeeded().stdout,
            lambda described: "PartitionCount: 4" in described,
        )

    def test_fewer_partitions_are_refused_with_the_reason(
        self, run: Run, create: CreateTopic, topic: str
    ) -> None:
        create(topic, partitions=5)
        result = run("TopicCommand", "--alter", "--topic", topic, "--partitions", 2)
        assert result.exit_code == 1
        assert f"The topic {topic} currently has 5 partition(s); 2 would not be an increase." in result.stdout

    def test_topic_that_exists_is_refused_unless_that_is_fine(
        self, run: Run, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        result = run("TopicCommand", "--create", "--topic", topic)
        assert result.exit_code == 1
        assert f"Topic '{topic}' already exists." in result.stdout
        run("TopicCommand", "--create", "--topic", topic, "--if-not-exists").succeeded()

    def test_unhealthy_partitions_are_none(self, run: Run, create: CreateTopic, topic: str) -> None:
        create(topic, partitions=2)
        for question in ("--unavailable-partitions", "--under-replicated-partitions"):
            described = run("TopicCommand", "--describe", "--topic", topic, question).succeeded()
            assert described.stdout.strip() == ""

    def test_topic_is_found_by_its_id(self, run: Run, create: CreateTopic, topic: str) -> None:
        create(topic)
        by_name = run("TopicCommand", "--describe", "--topic", topic).succeeded().lines
        topic_id = re.findall(r"TopicId: (\S+)", by_name[0])[0]
        by_id = run("TopicCommand", "--describe", "--topic-id", topic_id).succeeded().lines
        assert by_id[0] == by_name[0]


class TestConfigCommand:
    def test_topic_config_is_set_shown_and_deleted(self, run: Run, create: CreateTopic, topic: str) -> None:
        create(topic)
        entity = ("--entity-type", "topics", "--entity-name", topic)
        changed = run(
            "ConfigCommand",
            "--alter",
            *entity,
            "--add-config",
            "retention.ms=86400000,max.message.bytes=5000",
        ).succeeded()
        assert changed.lines == [f"Completed updating config for topic {topic}."]
        eventually(
            lambda: _described(run("ConfigCommand", "--describe", *entity)),
            lambda found: found == {"retention.ms": "86400000", "max.message.bytes": "5000"},
        )
        run("ConfigCommand", "--alter", *entity, "--delete-config", "retention.ms").succeeded()
        eventually(
            lambda: _described(run("ConfigCommand", "--describe", *entity)),
            lambda found: found == {"max.message.bytes": "5000"},
        )

    def test_all_configs_of_a_topic_include_the_defaults(
        self, run: Run, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        shown = run("ConfigCommand", "--describe", "--all", "--entity-type", "topics", "--entity-name", topic)
        configs = _described(shown)
        assert configs["cleanup.policy"] == "delete"
        assert configs["segment.bytes"] == "1073741824"
        assert configs["index.interval.bytes"] == "4096"
        assert configs["message.timestamp.type"] == "CreateTime"

    def test_invalid_value_is_refused_with_the_reason(
        self, run: Run, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        entity = ("--entity-type", "topics", "--entity-name", topic)
        result = run("ConfigCommand", "--alter", *entity, "--add-config", "retention.ms=soon")
        assert result.exit_code == 1
        assert "Invalid value soon for configuration retention.ms: Not a number of type LONG" in result.stderr

    def test_static_configs_of_a_broker_are_described(
        self, run: Run, client: ConfluentKafkaClient, server: Server
    ) -> None:
        broker = client.describe_cluster().controller
        shown = run(
            "ConfigCommand", "--describe", "--all", "--entity-type", "brokers", "--entity-name", broker
        )
        configs = _described(shown)
        assert configs["node.id"] == str(broker)
        assert configs["log.dirs"] == str(server.data_dir)
        assert configs["num.network.threads"] == "3"
        assert configs["auto.create.topics.enable"] == "true"

    def test_dynamic_config_of_all_brokers_becomes_the_default_of_topics(
        self, run: Run, client: ConfluentKafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        default = ("--entity-type", "brokers", "--entity-default")
        run(
            "ConfigCommand", "--alter", *default, "--add-config", "log.flush.interval.messages=77"
        ).succeeded()
        try:
            eventually(
                lambda: client.describe_topic_configs(topic), lambda found: found["flush.messages"] == "77"
            )
            assert (
                _described(run("ConfigCommand", "--describe", *default))["log.flush.interval.messages"]
                == "77"
            )
        finally:
            run(
                "ConfigCommand", "--alter", *default, "--delete-config", "log.flush.interval.messages"
            ).succeeded()
        eventually(
            lambda: client.describe_topic_configs(topic),
            lambda found: found["flush.messages"] == str(2**63 - 1),
        )

    def test_dynamic_config_of_one_broker_is_set_and_deleted(
        self, run: Run, client: ConfluentKafkaClient
    ) -> None:
        broker = client.describe_cluster().controller
        entity = ("--entity-type", "brokers", "--entity-name", broker)
        run("ConfigCommand", "--alter", *entity, "--add-config", "log.cleaner.threads=2").succeeded()
        eventually(
            lambda: _described(run("ConfigCommand", "--describe", *entity)),
            lambda found: found.get("log.cleaner.threads") == "2",
        )
        run("ConfigCommand", "--alter", *entity, "--delete-config", "log.cleaner.threads").succeeded()
        eventually(
            lambda: _described(run("ConfigCommand", "--describe", *entity)),
            lambda found: "log.cleaner.threads" not in found,
        )

    def test_config_that_needs_a_restart_is_refused(self, run: Run, client: ConfluentKafkaClient) -> None:
        broker = client.describe_cluster().controller
        entity = ("--entity-type", "brokers", "--entity-name", broker)
        result = run("ConfigCommand", "--alter", *entity, "--add-config", "node.id=5")
        assert result.exit_code == 1
        assert "Cannot update these configs dynamically: [node.id]" in result.stderr


class TestGetOffsetShell:
    @pytest.fixture
    def filled(self, client: ConfluentKafkaClient, create: CreateTopic, topic: str) -> str:
        """Partition 0 is empty, 1 lost its first records, and in 2 the record in the middle is the youngest."""
        create(topic, partitions=3)
        client.write(topic, numbered(20), partition=1)
        client.delete_records(topic, {1: 4})
        youngest = Sample(value=b"youngest", timestamp_ms=BASE_TIMESTAMP_MS + 1_000_000)
        client.write(topic, [*numbered(5), youngest, *numbered(5)], partition=2)
        return topic

    @pytest.mark.parametrize(
        ("when", "offsets"),
        [
            ("-1", {0: 0, 1: 20, 2: 11}),
            ("latest", {0: 0, 1: 20, 2: 11}),
            ("-2", {0: 0, 1: 4, 2: 0}),
            ("earliest", {0: 0, 1: 4, 2: 0}),
            ("-3", {1: 19, 2: 5}),
            ("max-timestamp", {1: 19, 2: 5}),
            ("-4", {0: 0, 1: 4, 2: 0}),
            ("earliest-local", {0: 0, 1: 4, 2: 0}),
            ("latest-tiered", {}),
            (str(BASE_TIMESTAMP_MS + 10), {1: 10, 2: 5}),
            (str(BASE_TIMESTAMP_MS + 2_000_000), {}),
        ],
        ids=["-1", "latest", "-2", "earliest", "-3", "max", "-4", "local", "tiered", "time", "future"],
    )
    def test_offsets_by_time(self, run: Run, filled: str, when: str, offsets: dict[int, int]) -> None:
        printed = run("GetOffsetShell", "--topic", filled, "--time", when).succeeded().lines
        assert printed == [f"{filled}:{partition}:{offset}" for partition, offset in offsets.items()]

    def test_partitions_can_be_chosen(self, run: Run, filled: str) -> None:
        assert run("GetOffsetShell", "--topic-partitions", f"{filled}:1-3").succeeded().lines == [
            f"{filled}:1:20",
            f"{filled}:2:11",
        ]


def test_delete_records_command_moves_the_log_start(
    run: Run, client: ConfluentKafkaClient, create: CreateTopic, topic: str, tmp_path: Path
) -> None:
    create(topic, partitions=2)
    client.write(topic, numbered(10), partition=0)
    client.write(topic, numbered(10), partition=1)
    wanted = tmp_path / "offsets.json"
    wanted.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": topic, "partition": 0, "offset": 3},
                    {"topic": topic, "partition": 1, "offset": -1},
                ],
            }
        )
    )
    printed = run("DeleteRecordsCommand", "--offset-json-file", wanted).succeeded().lines
    assert sorted(printed[-2:]) == [
        f"partition: {topic}-0\tlow_watermark: 3",
        f"partition: {topic}-1\tlow_watermark: 10",
    ]
    assert client.beginning_offsets(topic, [0, 1]) == {0: 3, 1: 10}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_producer_performance_reports_every_record(
    run: Run, client: ConfluentKafkaClient, create: CreateTopic, topic: str, acks: str
) -> None:
    create(topic, partitions=3)
    printed = run(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", 5000, "--record-size", 100, "--throughput", -1),
        *("--command-property", f"acks={acks}", "enable.idempotence=false"),
    ).succeeded()
    assert printed.lines[-1].startswith("5000 records sent, ")
    # Without acknowledgements the last records may still be on their way.
    eventually(lambda: sum(client.end_offsets(topic, range(3)).values()), lambda total: total == 5000)


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_and_consumer_pass_keys_headers_and_values(
    run: Run, create: CreateTopic, topic: str, codec: str
) -> None:
    create(topic)
    run(
        "ConsoleProducer",
        *("--topic", topic, "--compression-codec", codec),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        stdin="h1:a,h2:b\tk1\tfirst\nh1:c\tk2\tsecond\n",
    ).succeeded()
    result = run(
        "ConsoleConsumer",
        *("--topic", topic, "--partition", 0, "--offset", "earliest", "--max-messages", 2),
        *("--timeout-ms", 20_000, "--command-property", "fetch.max.wait.ms=50"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.offset=true", "--formatter-property", "print.partition=true"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "Processed a total of 2 messages\n"
    assert result.lines == [
        "Partition:0\tOffset:0\th1:a,h2:b\tk1\tfirst",
        "Partition:0\tOffset:1\th1:c\tk2\tsecond",
    ]


def test_console_consumer_starts_at_an_offset(
    run: Run, client: ConfluentKafkaClient, create: CreateTopic, topic: str
) -> None:
    create(topic, partitions=2)
    client.write(topic, numbered(10), partition=1)
    result = run(
        "ConsoleConsumer",
        *("--topic", topic, "--partition", 1, "--offset", 6, "--max-messages", 4, "--timeout-ms", 20_000),
    )
    assert result.exit_code == 0, result.stderr
    assert result.lines == [str(sample.value, "ascii") for sample in numbered(10)[6:]]


def test_api_versions_cover_what_the_newest_clients_use(run: Run, server: Server) -> None:
    printed = run("BrokerApiVersionsCommand").succeeded().stdout
    assert printed.startswith(f"{server.bootstrap} (id: ")
    versions = {
        name: (int(least), int(most))
        for name, least, most in re.findall(
            r"^\t(\w+)\(\d+\): (\d+) to (\d+) \[usable: \d+\]", printed, re.MULTILINE
        )
    }
    assert versions["Produce"] == (0, 13)
    assert versions["Fetch"] == (4, 18)
    assert versions["ApiVersions"][0] == 0
    assert {"Metadata", "ListOffsets", "CreateTopics", "DeleteTopics", "InitProducerId"} <= versions.keys()


def test_cluster_tool_prints_the_cluster_id(
    kafka_tools: KafkaTools, server: Server, client: ConfluentKafkaClient
) -> None:
    result = kafka_tools.run("ClusterTool", "cluster-id", "--bootstrap-server", server.bootstrap).succeeded()
    assert result.lines == [f"Cluster ID: {client.describe_cluster().cluster_id}"]


def test_log_dirs_command_shows_the_directory_and_the_size_of_each_partition(
    run: Run, client: ConfluentKafkaClient, create: CreateTopic, server: Server, topic: str
) -> None:
    create(topic, partitions=2)
    client.write(topic, numbered(100, size=1000), partition=1)
    described = json.loads(run("LogDirsCommand", "--describe", "--topic-list", topic).succeeded().lines[-1])
    (broker,) = described["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["logDir"] == str(server.data_dir)
    assert directory["error"] is None
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    segment = server.data_dir / f"{topic}-1" / f"{0:020d}.log"
    assert sizes == {f"{topic}-0": 0, f"{topic}-1": segment.stat().st_size}


def test_tool_in_a_process_of_its_own_prints_the_same(
    kafka_tools: KafkaTools, server: Server, create: CreateTopic, topic: str
) -> None:
    create(topic)
    question = ("GetOffsetShell", "--bootstrap-server", server.bootstrap, "--topic", topic)
    assert kafka_tools.run_alone(*question) == kafka_tools.run(*question).succeeded()


def _described(result: ToolResult) -> dict[str, str]:
    """Returns the configs that ConfigCommand --describe printed."""
    pairs = re.findall(r"^  (\S+)=(.*) sensitive=", result.succeeded().stdout, flags=re.MULTILINE)
    return dict(pairs)


class TestBrokerLoggers:
    def test_levels_are_described_changed_and_deleted_while_the_broker_runs(self, run: Run) -> None:
        which = ("--entity-type", "broker-loggers", "--entity-name", 1)
        described = run("ConfigCommand", "--describe", *which).succeeded().stdout
        assert "strandline.requests=" in described
        run("ConfigCommand", "--alter", *which, "--add-config", "strandline.groups=DEBUG").succeeded()
        changed = run("ConfigCommand", "--describe", *which).succeeded().stdout
        assert "strandline.groups=DEBUG" in changed
        run("ConfigCommand", "--alter", *which, "--delete-config", "strandline.groups").succeeded()
        assert "strandline.groups=DEBUG" not in run("ConfigCommand", "--describe", *which).succeeded().stdout
        refused = run("ConfigCommand", "--alter", *which, "--add-config", "no.such.logger=DEBUG")
        assert refused.exit_code != 0
        assert "no.such.logger" in refused.stdout + refused.stderr
