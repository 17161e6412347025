"""Java's clients and librdkafka push their own metrics (KIP-714), and the node's page shows them beside its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer

from strandline.testing import running_broker
from strandline.testing.process import BrokerProcess
from tests.oracle.kafka_tools import KafkaTools, ToolResult
from tests.prometheus import soon
from tests.scraping import read, samples_of

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Run = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with running_broker(metrics=True) as started:
        yield started


@pytest.fixture
def run(kafka_tools: KafkaTools, broker: BrokerProcess) -> Run:
    def run(tool: str, *args: object) -> ToolResult:
        return kafka_tools.run(tool, "--bootstrap-server", broker.bootstrap, *args)

    return run


def pushed(broker: BrokerProcess, name: str, client_id: str) -> list[float]:
    found = samples_of(broker.metrics_url).get(name, [])
    return [value for labels, value in found if labels["client_id"] == client_id]


def told(broker: BrokerProcess) -> object:
    """Returns the lines of the page about clients, for a failure's message."""
    found = samples_of(broker.metrics_url)
    return {name: samples for name, samples in found.items() if "client_" in name or name.startswith("org_")}


def test_kafka_s_tools_make_show_and_remove_subscriptions(run: Run) -> None:
    run(
        "ClientMetricsCommand",
        *("--alter", "--name", "tools", "--metrics", "org.apache.kafka.producer.", "--interval", 60_000),
        *("--match", "client_id=nobody"),
    ).succeeded()
    assert run("ClientMetricsCommand", "--list").succeeded().lines == ["tools"]
    shown = run("ClientMetricsCommand", "--describe", "--name", "tools").succeeded().stdout
    assert "interval.ms=60000" in shown
    assert "match=client_id=nobody" in shown
    kind = ("--entity-type", "client-metrics", "--entity-name", "tools")
    assert (
        "metrics=org.apache.kafka.producer." in run("ConfigCommand", "--describe", *kind).succeeded().stdout
    )
    run("ConfigCommand", "--alter", *kind, "--add-config", "interval.ms=30000").succeeded()
    assert "interval.ms=30000" in run("ConfigCommand", "--describe", *kind).succeeded().stdout
    refused = run("ConfigCommand", "--alter", *kind, "--add-config", "interval.ms=5")
    assert "interval must be between 100 and 3600000" in refused.stdout + refused.stderr
    run("ClientMetricsCommand", "--delete", "--name", "tools").succeeded()
    assert run("ClientMetricsCommand", "--list").succeeded().stdout.strip() == ""


@pytest.fixture
def subscription(run: Run) -> Iterator[None]:
    run("ClientMetricsCommand", "--alter", "--name", "all", "--metrics", "*", "--interval", 300).succeeded()
    yield
    run("ClientMetricsCommand", "--delete", "--name", "all").succeeded()


@pytest.mark.usefixtures("subscription")
def test_java_s_producer_and_consumer_tell_their_latencies_and_errors(
    run: Run, broker: BrokerProcess
) -> None:
    run("TopicCommand", "--create", "--topic", "sales", "--partitions", 2).succeeded()
    run(
        "ProducerPerformance",
        *("--topic", "sales", "--num-records", 400, "--record-size", 100, "--throughput", 200),
        *("--command-property", "client.id=till", "acks=all"),
    ).succeeded()
    assert pushed(broker, "org_apache_kafka_producer_connection_creation_total", "till") == [2]
    (latency,) = pushed(broker, "org_apache_kafka_producer_request_latency_avg", "till")
    assert 0 < latency < 1000
    (longest,) = pushed(broker, "org_apache_kafka_producer_request_latency_max", "till")
    assert latency <= longest
    assert pushed(broker, "org_apache_kafka_producer_record_error_total", "till") == [0]
    # Its last push is on its way while it closes, and it does not wait for that for ever.
    (sent,) = pushed(broker, "org_apache_kafka_producer_record_send_total", "till")
    assert 0 < sent <= 400
    run(
        "ConsoleConsumer",
        *("--topic", "sales", "--from-beginning", "--max-messages", 400, "--timeout-ms", 20_000),
        *("--command-property", "client.id=reader", "--group", "books"),
    )
    assert pushed(broker, "org_apache_kafka_consumer_fetch_manager_records_consumed_total", "reader")
    infos = [labels for labels, _ in samples_of(broker.metrics_url)["strandline_client_info"]]
    (reader,) = [labels for labels in infos if labels["client_id"] == "reader"]
    assert reader["client_software_name"] == "apache-kafka-java"
    assert reader["group_id"] == "books"


@pytest.mark.usefixtures("subscription")
def test_librdkafka_pushes_its_latencies(broker: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "shop"})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "client.id": "desk", "group.id": "g"})
    consumer.subscribe(["orders"])
    is_done = threading.Event()

    def keep_busy() -> None:
        """An average is that of the last interval: there is one as long as something goes on."""
        while not is_done.wait(0.05):
            producer.produce("orders", b"x")
            producer.poll(0)
            consumer.poll(0)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:

        def both_have_told() -> bool:
            latency = pushed(broker, "org_apache_kafka_producer_request_latency_avg", "shop")
            connected = pushed(broker, "org_apache_kafka_consumer_connection_creation_total", "desk")
            return bool(latency) and latency[0] > 0 and bool(connected)

        soon(both_have_told, lambda: told(broker))
    finally:
        is_done.set()
        busy.join()
        consumer.close()
    _, kind, text = read(broker.metrics_url, accept="application/openmetrics-text")
    assert kind.startswith("application/openmetrics-text")
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    names = {family.name for family in text_string_to_metric_families(text)}
    assert "org_apache_kafka_producer_connection_creation" in names
