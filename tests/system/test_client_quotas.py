"""Quotas at work on a real broker: bytes, time, changes of topics, new connections."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from strandline.testing import BrokerProcess, running_broker
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.api.k48_describe_client_quotas import DescribeClientQuotasRequest
from tests.compat.wire import WireClient
from tests.system.quotas import produce, set_quota

THROTTLING_QUOTA_EXCEEDED = 89


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    # A window of a second: what is measured over ten of them by default is measured in this one.
    with running_broker(quota_window_num=2, controller_quota_window_num=1) as started:
        yield started


@pytest.fixture(autouse=True)
def without_quotas(broker: BrokerProcess) -> Iterator[None]:
    yield
    with WireClient(broker.bootstrap) as client:
        found: Any = client.call(DescribeClientQuotasRequest(components=(), strict=False), 1)
        for entry in found.entries:
            entity = {each.entity_type: each.entity_name for each in entry.entity}
            set_quota(client, entity, **{value.key: None for value in entry.values})


def create(client: WireClient, topic: str) -> None:
    client.call(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 9)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_over_its_quota_gets_its_throttle_time_and_is_muted(
    broker: BrokerProcess, strandline_topic: str, acks: int
) -> None:
    name = f"limited{acks}"
    with WireClient(broker.bootstrap, client_id=name) as client, WireClient(broker.bootstrap) as other:
        create(client, strandline_topic)
        set_quota(other, {"client-id": name}, producer_byte_rate=100_000)
        assert produce(client, strandline_topic, 50_000, acks=acks).throttle_time_ms == 0
        throttled = produce(client, strandline_topic, 100_000, acks=acks).throttle_time_ms
        assert 400 < throttled < 700
        began = time.monotonic()
        client.call(ApiVersionsRequest(), 0)
        assert time.monotonic() - began > throttled / 1000 - 0.1
        # Nobody else is slowed down.
        assert produce(other, strandline_topic, 300_000).throttle_time_ms == 0


def test_a_producer_that_wants_no_response_is_muted_too(broker: BrokerProcess, strandline_topic: str) -> None:
    with WireClient(broker.bootstrap, client_id="silent") as client, WireClient(broker.bootstrap) as other:
        create(client, strandline_topic)
        set_quota(other, {"client-id": "silent"}, producer_byte_rate=100_000)
        produce(client, strandline_topic, 150_000, acks=0)
        began = time.monotonic()
        client.call(ApiVersionsRequest(), 0)
        assert time.monotonic() - began > 0.35


def test_a_consumer_over_its_quota_gets_its_throttle_time_and_is_muted(
    broker: BrokerProcess, strandline_topic: str
) -> None:
    with WireClient(broker.bootstrap, client_id="reader") as client, WireClient(broker.bootstrap) as other:
        create(other, strandline_topic)
        for _ in range(4):
            produce(other, strandline_topic, 60_000)
        set_quota(other, {"client-id": "reader"}, consumer_byte_rate=100_000)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000_000)
        topic = FetchTopic(topic=strandline_topic, partitions=(partition,))
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10_000_000, topics=(topic,))
        first: Any = client.call(request, 12)
        # No more than the quota allows in the window.
        assert 0 < len(first.responses[0].partitions[0].records) <= 100_000
        second: Any = client.call(request, 12)
        assert second.throttle_time_ms > 0
        began = time.monotonic()
        client.call(ApiVersionsRequest(), 0)
        assert time.monotonic() - began > second.throttle_time_ms / 1000 - 0.1


def test_time_of_the_loop_is_limited(broker: BrokerProcess, strandline_topic: str) -> None:
    with WireClient(broker.bootstrap, client_id="busy") as client, WireClient(broker.bootstrap) as other:
        create(other, strandline_topic)
        set_quota(other, {"client-id": "busy"}, request_percentage=0.01)
        times = [client.call(MetadataRequest(topics=None), 9).throttle_time_ms for _ in range(4)]  # type: ignore[attr-defined]
        assert max(times) > 0
        assert max(times) <= 1000


def test_changes_of_topics_are_limited(broker: BrokerProcess, strandline_topic: str) -> None:
    with WireClient(broker.bootstrap, client_id="maker") as client, WireClient(broker.bootstrap) as other:
        set_quota(other, {"client-id": "maker"}, controller_mutation_rate=2)
        topics = tuple(
            CreatableTopic(
                name=f"{strandline_topic}-{number}",
                num_partitions=5,
                replication_factor=1,
                assignments=(),
                configs=(),
            )
            for number in range(2)
        )
        response: Any = client.call(CreateTopicsRequest(topics=topics, timeout_ms=5000), 7)
        codes = {topic.name: topic.error_code for topic in response.topics}
        assert codes == {topics[0].name: 0, topics[1].name: THROTTLING_QUOTA_EXCEEDED}
        # Two tokens were there, five were taken, and two come in a second.
        assert 1000 < response.throttle_time_ms <= 1500
        began = time.monotonic()
        deleted: Any = client.call(
            DeleteTopicsRequest(topics=(DeleteTopicState(name=topics[0].name),), timeout_ms=5000), 6
        )
        assert time.monotonic() - began > 0.9, "the connection is muted"
        assert deleted.responses[0].error_code == 0


def test_connections_of_an_address_are_limited(broker: BrokerProcess) -> None:
    host, _, port = broker.bootstrap.rpartition(":")

    def is_served() -> bool:
        with socket.create_connection((host, int(port)), 10, ("127.0.0.9", 0)) as connection:
            connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff".replace(" ", "")))
            try:
                return connection.recv(1) != b""
            except ConnectionResetError:
                return False

    with WireClient(broker.bootstrap) as other:
        set_quota(other, {"ip": "127.0.0.9"}, connection_creation_rate=2)
        served = [is_served() for _ in range(5)]
    assert served[:2] == [True, True]
    assert not all(served)


def test_connections_of_a_listener_are_slowed_down() -> None:
    with running_broker(max_connection_creation_rate=5, quota_window_num=2) as broker:
        began = time.monotonic()
        for _ in range(12):
            with WireClient(broker.bootstrap) as client:
                client.call(ApiVersionsRequest(), 0)
        assert time.monotonic() - began > 0.8


def test_quotas_are_kept_over_a_kill_and_can_be_removed(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        set_quota(client, {"user": None, "client-id": None}, producer_byte_rate=1e9)
    broker.kill()
    broker.start()
    with WireClient(broker.bootstrap) as client:
        found: Any = client.call(DescribeClientQuotasRequest(components=(), strict=False), 1)
        assert [value.value for entry in found.entries for value in entry.values] == [1e9]
        set_quota(client, {"user": None, "client-id": None}, producer_byte_rate=None)
        found = client.call(DescribeClientQuotasRequest(components=(), strict=False), 1)
        assert found.entries == ()
