"""Figures on a node's page that need a story of their own: a restart, refused requests, a wrong password."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.client.errors import KafkaError
from strandline.client.sync import Admin, Consumer, Producer, TopicPartition
from strandline.testing import running_broker
from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.compat.wire import WireClient
from tests.scraping import Samples, samples_of

OF_LOGS = (
    "kafka_log_log_size",
    "kafka_log_log_logendoffset",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_numlogsegments",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_oldest_offset",
)


def of_topic(found: Samples, topic: str) -> dict[str, dict[str, float]]:
    return {
        name: {labels["partition"]: value for labels, value in found[name] if labels["topic"] == topic}
        for name in OF_LOGS
    }


def lag_of(broker: BrokerProcess) -> list[float]:
    return [value for _, value in samples_of(broker.metrics_url).get("kafka_consumergroup_lag", [])]


def test_logs_that_were_not_opened_since_a_restart_have_their_figures(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path / "data", metrics=True) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topic("orders", partitions=3, configs={"segment.bytes": "1048576"})
        with Producer(bootstrap_servers=broker.bootstrap, batch_size=200_000) as producer:
            for number in range(30):
                producer.send_and_wait("orders", bytes(100_000), partition=number % 2)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.delete_records({TopicPartition("orders", 0): 4})
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="billing") as consumer:
            consumer.commit({TopicPartition("orders", 1): 5})
        wait_until(lambda: lag_of(broker) == [10])
        before = of_topic(samples_of(broker.metrics_url), "orders")
        assert before["kafka_log_log_logendoffset"] == {"0": 15, "1": 15, "2": 0}
        assert before["kafka_topic_partition_oldest_offset"] == {"0": 4, "1": 0, "2": 0}
        assert before["kafka_log_log_numlogsegments"]["1"] == 2
        broker.stop()
        broker.start()
        after = of_topic(samples_of(broker.metrics_url), "orders")
        assert {name: values["0"] for name, values in after.items()} == {
            name: values["0"] for name, values in before.items()
        }
        assert {name: values["1"] for name, values in after.items()} == {
            name: values["1"] for name, values in before.items()
        }
        wait_until(lambda: lag_of(broker) == [10])
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send_and_wait("orders", b"x", partition=1)
        opened = of_topic(samples_of(broker.metrics_url), "orders")
        assert opened["kafka_log_log_logendoffset"] == {"0": 15, "1": 16, "2": 0}


def test_errors_are_counted_whichever_way_a_request_is_handled() -> None:
    with running_broker(metrics=True) as broker:
        topic = OffsetCommitRequestTopic(
            name="no-such-topic",
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=1, committed_metadata=None
                )
                for index in range(2)
            ),
        )
        requests = (
            (
                MetadataRequest(
                    topics=(MetadataRequestTopic(name="no-such-topic"),), allow_auto_topic_creation=False
                ),
                8,
            ),
            (OffsetCommitRequest(group_id="g", member_id="", topics=(topic,)), 8),
            (
                DescribeConfigsRequest(
                    resources=(
                        DescribeConfigsResource(
                            resource_type=2, resource_name="no-such-topic", configuration_keys=None
                        ),
                    )
                ),
                4,
            ),
        )
        with WireClient(broker.bootstrap) as client:
            for request, version in requests:
                client.call(request, version)
        found = samples_of(broker.metrics_url)["kafka_network_requestmetrics_errors_total"]
        errors = {
            labels["request"]: value
            for labels, value in found
            if labels["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
        }
        assert errors == {"Metadata": 1, "OffsetCommit": 2, "DescribeConfigs": 1}


def test_failed_logins_are_counted() -> None:
    with running_broker(metrics=True, security="SASL_PLAINTEXT") as broker:
        name = "kafka_server_socket_server_metrics_failed_authentication_total"
        assert samples_of(broker.metrics_url)[name] == [({}, 0)]
        settings = {
            "bootstrap_servers": broker.bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": broker.client_settings["sasl.mechanism"],
            "sasl_jaas_config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="somebody" password="wrong";'
            ),
        }
        with pytest.raises(KafkaError), Admin(**settings, request_timeout_ms=2000) as admin:
            admin.list_topics()
        assert samples_of(broker.metrics_url)[name][0][1] >= 1
