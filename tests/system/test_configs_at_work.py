"""Settings of topics and of brokers, changed by an admin client while a real broker runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.base.errors import ErrorCode
from strandline.config.alter import DELETE, SET
from strandline.config.dynamic import BROKER, TOPIC
from strandline.testing import BrokerProcess
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.compat.wire import WireClient
from tests.system.records import append, count
from tests.waiting import eventually


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(
        tmp_path_factory.mktemp("configs") / "data",
        {
            "log.retention.check.interval.ms": "100",
            "log.segment.delete.delay.ms": "300",
            "log.segment.bytes": "1048576",
        },
    )
    process.start()
    yield process
    process.stop()


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(admin: AdminClient, topic: str, **configs: str) -> None:
    given = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(topic, 1, 1, config=given)])[topic].result(10)


def alter(broker: BrokerProcess, kind: int, name: str, key: str, value: str | None) -> None:
    """Through the wire: confluent-kafka cannot name the brokers' common defaults."""
    change = AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
    with WireClient(broker.bootstrap) as client:
        answer = client.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]


def segments(broker: BrokerProcess, topic: str) -> list[Path]:
    return sorted((broker.data_dir / f"{topic}-0").glob("*.log"))


def test_old_records_go_by_themselves(broker: BrokerProcess, admin: AdminClient) -> None:
    create(admin, "by-time")
    with WireClient(broker.bootstrap) as client:
        for _ in range(4):
            assert append(client, "by-time", 900_000) == ErrorCode.NONE
    assert len(segments(broker, "by-time")) == 4
    alter(broker, TOPIC, "by-time", "retention.ms", "1")
    eventually(lambda: len(segments(broker, "by-time")) == 1)
    eventually(lambda: not list((broker.data_dir / "by-time-0").glob("*.deleted")))


def test_a_broker_default_changed_while_it_runs_holds_for_topics_that_are_there(
    broker: BrokerProcess, admin: AdminClient
) -> None:
    create(admin, "by-size")
    with WireClient(broker.bootstrap) as client:
        for _ in range(5):
            assert append(client, "by-size", 900_000) == ErrorCode.NONE
        time.sleep(0.3)
        assert len(segments(broker, "by-size")) == 5
        alter(broker, BROKER, "", "log.retention.bytes", "1900000")
        eventually(lambda: len(segments(broker, "by-size")) == 3)
        alter(broker, BROKER, "1", "log.retention.bytes", "1000000")
        eventually(lambda: len(segments(broker, "by-size")) == 2)
        alter(broker, BROKER, "1", "log.retention.bytes", None)
        alter(broker, BROKER, "", "log.retention.bytes", None)
        alter(broker, BROKER, "", "message.max.bytes", "5000")
        assert append(client, "by-size", 6000) == ErrorCode.MESSAGE_TOO_LARGE
        alter(broker, TOPIC, "by-size", "max.message.bytes", "9000")
        assert append(client, "by-size", 6000) == ErrorCode.NONE
        alter(broker, BROKER, "", "message.max.bytes", None)


def test_changes_are_there_after_a_kill(broker: BrokerProcess, admin: AdminClient) -> None:
    create(admin, "kept", max_message_bytes="2000")
    alter(broker, BROKER, "", "compression.type", "zstd")
    broker.kill()
    broker.start()
    with WireClient(broker.bootstrap) as client:
        assert append(client, "kept", 3000) == ErrorCode.MESSAGE_TOO_LARGE
        assert append(client, "kept", 1000) == ErrorCode.NONE
        assert count(client, "kept") == 1
    stored = (broker.data_dir / "kept-0" / "00000000000000000000.log").read_bytes()
    assert stored[22] & 7 == 4, "zstd"
    alter(broker, BROKER, "", "compression.type", None)


def test_a_record_too_old_or_too_far_ahead_is_refused_to_a_real_client(
    broker: BrokerProcess, admin: AdminClient
) -> None:
    create(admin, "timely", message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000")
    results: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    now = int(time.time() * 1000)
    for timestamp in (now - 120_000, now, now + 120_000):
        producer.produce(
            "timely", b"v", timestamp=timestamp, on_delivery=lambda error, _: results.append(error)
        )
        producer.flush(60)
    assert [error.code() if error else None for error in results] == [32, None, 32]  # type: ignore[attr-defined]
