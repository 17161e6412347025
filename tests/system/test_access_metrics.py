"""Metrics of rules and quotas, by the names that Kafka and jmx_exporter give them."""

from __future__ import annotations

import time
from typing import Any

from strandline.client import Acl
from strandline.testing import running_broker
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.compat.wire import WireClient
from tests.scraping import samples_of
from tests.system.quotas import produce, set_quota

_ALL = 2
_TOPIC, _CLUSTER = 2, 4
DENIED = "kafka_server_plugins_authorization_denied_rate_per_minute"
ALLOWED = "kafka_server_plugins_authorization_allowed_rate_per_minute"


def test_denied_and_allowed_acts_are_counted() -> None:
    anonymous = "User:ANONYMOUS"
    rules = [
        Acl(resource_type=_TOPIC, resource_name="open", principal=anonymous, operation=_ALL),
        Acl(resource_type=_CLUSTER, resource_name="kafka-cluster", principal=anonymous, operation=_ALL),
    ]
    with running_broker(acls=rules, metrics=True) as broker, WireClient(broker.bootstrap) as client:
        for name in ("open", "closed"):
            client.call(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 9)
        before = samples_of(broker.metrics_url)
        for _ in range(5):
            assert produce(client, "open", 10).responses[0].partition_responses[0].error_code == 0
        for _ in range(3):
            assert produce(client, "closed", 10).responses[0].partition_responses[0].error_code == 29
        after = samples_of(broker.metrics_url)
    labels = {"config": "authorizer.class.name", "class": "StandardAuthorizer", "role": "broker"}
    assert after["kafka_server_plugins_acls_total_count"] == [(labels, 2)]
    for name, result, count in ((DENIED, "denied", 3), (ALLOWED, "allowed", 5)):
        assert after[name][0][0] == labels
        assert after[name][0][1] > before[name][0][1]
        assert _total(after, result) - _total(before, result) == count


def _total(samples: Any, result: str) -> float:
    return next(
        value for labels, value in samples["strandline_authorizations_total"] if labels["result"] == result
    )


def test_the_use_of_quotas_is_shown() -> None:
    with running_broker(metrics=True, quota_window_num=2, controller_quota_window_num=1) as broker:
        with WireClient(broker.bootstrap) as other, WireClient(broker.bootstrap, client_id="app") as client:
            other.call(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 9)
            assert "kafka_server_quota_byte_rate" not in samples_of(broker.metrics_url)
            set_quota(other, {"client-id": "app"}, producer_byte_rate=100_000, request_percentage=50)
            set_quota(other, {"user": "ANONYMOUS"}, controller_mutation_rate=1)
            assert produce(client, "t", 90_000).throttle_time_ms == 0
            throttle_ms = produce(client, "t", 90_000).throttle_time_ms
            assert throttle_ms > 0
            for name in ("first", "refused"):
                topic = CreatableTopic(
                    name=name, num_partitions=3, replication_factor=1, assignments=(), configs=()
                )
                other.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 7)
        found = samples_of(broker.metrics_url)
    app = {"resource": "Produce", "clientId": "app"}
    assert 0 < dict_of(found, "kafka_server_quota_byte_rate", app) < 200_000
    assert abs(dict_of(found, "kafka_server_quota_throttle_time", app) - throttle_ms) <= 1
    assert dict_of(found, "kafka_server_quota_request_time", {"resource": "Request", "clientId": "app"}) > 0
    changes = {"resource": "ControllerMutation", "user": "ANONYMOUS"}
    assert -2 <= dict_of(found, "kafka_server_quota_tokens", changes) < 0
    assert dict_of(found, "kafka_server_quota_throttle_time", changes) > 0


def dict_of(samples: Any, name: str, labels: dict[str, str]) -> float:
    return next(value for found, value in samples[name] if found == labels)


def test_connections_that_wait_for_a_rate_are_shown() -> None:
    with running_broker(metrics=True, quota_window_num=2, max_connection_creation_rate=4) as broker:
        for _ in range(8):
            WireClient(broker.bootstrap).socket.close()
        deadline = time.monotonic() + 10
        name = "kafka_server_socket_server_metrics_connection_accept_throttle_time"
        while not (found := samples_of(broker.metrics_url)).get(name):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert dict_of(found, name, {"listener": "PLAINTEXT"}) > 0
