"""GetTelemetrySubscriptions and PushTelemetry (KIP-714): who is asked for what, who is refused, who is forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from strandline.base.errors import ErrorCode
from strandline.broker.telemetry.clients import instances
from strandline.broker.telemetry.clients.otlp import SERIES_MAX, prometheus_name, read_push
from strandline.telemetry.exposition import render
from strandline.wire import compression
from strandline.wire.api import k44_incremental_alter_configs as k44
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.api.k71_get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from strandline.wire.api.k72_push_telemetry import PushTelemetryRequest
from strandline.wire.schema import ZERO_UUID
from tests.unit.broker.world import Client, World, in_world

CLIENT = bytes(range(16, 32))


async def subscribe(client: Client, name: str = "all", **settings: str) -> None:
    configs = tuple(
        k44.AlterableConfig(name=key.replace("_", "."), config_operation=0 if value else 1, value=value)
        for key, value in settings.items()
    )
    resource = k44.AlterConfigsResource(resource_type=16, resource_name=name, configs=configs)
    request = k44.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (response,) = (await client.call(request, 1)).responses
    assert response.error_code == ErrorCode.NONE, response.error_message


async def ask(client: Client, instance_id: bytes = CLIENT) -> Any:
    return await client.call(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


async def push(client: Client, asked: Any, data: bytes = b"", **fields: Any) -> int:
    given = {
        "client_instance_id": asked.client_instance_id,
        "subscription_id": asked.subscription_id,
        "terminating": False,
        "compression_type": 0,
    }
    response = await client.call(PushTelemetryRequest(**given | fields, metrics=data), 0)
    code: int = response.error_code
    return code


def metrics(**sums: float) -> MetricsData:
    """Counters of these names."""
    message = MetricsData()
    scope = message.resource_metrics.add().scope_metrics.add()
    for name, value in sums.items():
        metric = scope.metrics.add(name=name.replace("_", "."))
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = 2
        metric.sum.data_points.add(as_double=value)
    return message


def page(world: World) -> dict[str, float]:
    """Every series of clients on the node's page."""
    from strandline.broker.telemetry.clients.collector import ClientMetricsCollector

    collector = ClientMetricsCollector(world.broker.node, world.broker.client_telemetry)
    list(collector.node_families())
    text = "".join(render(collector.client_families(), is_open_metrics=False, series_max=10**6))
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith(("org_", "client_"))]
    return {name: float(value) for name, _, value in lines}


async def announced(client: Client) -> set[int]:
    response = await client.call(ApiVersionsRequest(), 0)
    return {api.api_key for api in response.api_keys} & {71, 72}


@in_world()
async def test_apis_are_announced_as_long_as_there_is_a_subscription(world: World) -> None:
    client = world.connect()
    assert await announced(client) == set()
    await subscribe(client, metrics="*")
    assert await announced(client) == {71, 72}
    await subscribe(client, metrics="")
    assert await announced(client) == set()


@in_world()
async def test_without_the_extra_nothing_is_announced_and_one_line_names_it(world: World) -> None:
    world.broker.client_telemetry._can_read = False
    client = world.connect()
    await subscribe(client, metrics="*")
    await subscribe(client, "other", metrics="*")
    assert await announced(client) == set()
    said = [line for line in world.lines if "strandline[telemetry]" in line]
    assert len(said) == 1
    asked = await ask(client)
    assert await push(client, asked, b"x") == ErrorCode.INVALID_RECORD


@in_world()
async def test_a_client_gets_an_id_and_the_metrics_of_every_subscription_that_matches(world: World) -> None:
    client = world.connect()
    await subscribe(
        client, "a", metrics="org.apache.kafka.producer.,org.apache.kafka.consumer.", interval_ms="5000"
    )
    await subscribe(
        client, "b", metrics="org.apache.kafka.producer.", interval_ms="1000", match="client_id=te.t"
    )
    await subscribe(client, "c", metrics="*", match="client_id=somebody")
    await subscribe(client, "d", metrics="*", match="client_id=tes, client_source_port=.*")
    asked = await ask(client, ZERO_UUID)
    assert asked.error_code == ErrorCode.NONE
    assert asked.client_instance_id != ZERO_UUID
    assert asked.requested_metrics == ("org.apache.kafka.consumer.", "org.apache.kafka.producer.")
    assert asked.push_interval_ms == 1000
    assert asked.accepted_compression_types == (4, 3, 1, 2)
    assert asked.telemetry_max_bytes == 1_048_576
    await subscribe(client, "c", match="")
    again = await ask(client, asked.client_instance_id)
    assert again.requested_metrics == ("*",)
    assert again.client_instance_id == asked.client_instance_id
    assert again.subscription_id != asked.subscription_id


@in_world()
async def test_requests_that_come_too_early_are_throttled(world: World) -> None:
    client = world.connect()
    await subscribe(client, metrics="*", interval_ms="10000")
    asked = await ask(client)
    assert (await ask(client)).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert await push(client, asked) == ErrorCode.NONE, "the first one after asking is free"
    assert await push(client, asked) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.clock.ms += 10_000
    assert await push(client, asked) == ErrorCode.NONE
    assert await push(client, asked, terminating=True) == ErrorCode.NONE, "the last one may come at any time"
    assert await push(client, asked) == ErrorCode.INVALID_REQUEST


@in_world(telemetry_max_bytes="1000")
async def test_pushes_that_cannot_be_taken_get_the_codes_of_kafka(world: World) -> None:
    client = world.connect()
    await subscribe(client, metrics="*", interval_ms="100")
    asked = await ask(client)
    large = compression.compress(compression.GZIP, bytes(100_000))
    cases = (
        ({"subscription_id": asked.subscription_id + 1}, b"", ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, b"", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, b"", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({}, bytes(1001), ErrorCode.TELEMETRY_TOO_LARGE),
        ({"compression_type": 1}, large, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"compression_type": 4}, b"no zstd", ErrorCode.INVALID_RECORD),
        ({}, b"\x0a\xff", ErrorCode.INVALID_RECORD),
        ({"client_instance_id": ZERO_UUID}, b"", ErrorCode.INVALID_REQUEST),
        ({}, b"", ErrorCode.NONE),
    )
    for fields, data, code in cases:
        world.clock.ms += 100
        assert await push(client, asked, data, **fields) == code, (fields, code)
    # Told that it must ask again, a client may do so at once.
    world.clock.ms += 100
    assert await push(client, asked, compression_type=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (await ask(client)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("codec", range(5))
def test_a_push_is_read_in_every_compression(codec: int) -> None:
    data = metrics(org_apache_kafka_producer_record_error=3).SerializeToString()
    (point,) = read_push(codec, compression.compress(codec, data), 1000).points
    assert (point.name, point.kind, point.value) == (
        "org_apache_kafka_producer_record_error_total",
        "counter",
        3,
    )


@in_world()
async def test_totals_replace_each_other_and_differences_add_up(world: World) -> None:
    client = world.connect()
    await subscribe(client, metrics="*", interval_ms="100")
    asked = await ask(client)
    message = metrics(org_apache_kafka_a=5, org_apache_kafka_b=7)
    message.resource_metrics[0].scope_metrics[0].metrics[1].sum.aggregation_temporality = 1
    for _ in range(3):
        world.clock.ms += 100
        assert await push(client, asked, message.SerializeToString()) == ErrorCode.NONE
    key = '{client_id="test",client_instance_id="EBESExQVFhcYGRobHB0eHw"}'
    assert page(world) == {f"org_apache_kafka_a_total{key}": 5, f"org_apache_kafka_b_total{key}": 21}


@in_world()
async def test_a_client_that_has_gone_or_fallen_silent_is_forgotten(world: World) -> None:
    client = world.connect()
    await subscribe(client, metrics="*", interval_ms="40000")
    data = metrics(org_apache_kafka_a=5).SerializeToString()
    for number, ending in enumerate((True, False)):
        other = world.connect()
        asked = await ask(other, bytes([number + 1]) * 16)
        assert await push(other, asked, data, terminating=ending) == ErrorCode.NONE
    asked = await ask(client)
    assert await push(client, asked, data) == ErrorCode.NONE
    other.disconnect()
    assert await other.closed()
    assert await client.is_silent()
    world.clock.ms += 59_000
    assert len(page(world)) == 3, "a scrape or two still see what was said last"
    world.clock.ms += 6_000
    assert len(page(world)) == 1, "one had said its last, of the other the connection ended"
    world.clock.ms += 60_000
    assert page(world) == {}
    assert world.broker.client_telemetry.series_count == 0


@pytest.fixture
def two_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "INSTANCES_MAX", 2)


@pytest.mark.usefixtures("two_clients")
@in_world(strandline_client_metrics_series_max="5")
async def test_series_are_limited_and_clients_too(world: World) -> None:
    client = world.connect()
    await subscribe(client, metrics="*")
    data = metrics(**{f"org_apache_kafka_{name}": 1 for name in "abc"}).SerializeToString()
    for number in (1, 2):
        assert await push(client, await ask(client, bytes([number]) * 16), data) == ErrorCode.NONE
    assert len(page(world)) == 5
    assert world.broker.client_telemetry.left_out == 1
    assert await push(client, await ask(client, b"\x03" * 16), data) == ErrorCode.NONE
    assert len(page(world)) == 5, "the first client made room"
    assert len(world.broker.client_telemetry.instances) == 2


def test_one_push_has_so_many_series_and_no_more() -> None:
    message = metrics(org_apache_kafka_a=1)
    points = message.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points
    for number in range(SERIES_MAX + 9):
        points.add(as_int=1).attributes.add(key="topic").value.string_value = f"t{number}"
    pushed = read_push(0, message.SerializeToString(), 10**7)
    assert (len(pushed.points), pushed.left_out) == (SERIES_MAX, 10)


def test_no_client_can_write_over_a_metric_of_the_node_or_break_the_page() -> None:
    assert prometheus_name("kafka.server.x") == "client_kafka_server_x"
    assert prometheus_name("org.apache.kafka.x-y\n} 1") == "org_apache_kafka_x_y_1"
    message = MetricsData()
    metric = message.resource_metrics.add().scope_metrics.add().metrics.add(name="org.apache.kafka.x")
    point = metric.gauge.data_points.add(as_double=1)
    for key, value in (("client_id", "x"), ("a b", 'quote"\n'), ("1st", "y")):
        point.attributes.add(key=key).value.string_value = value
    (found,) = read_push(0, message.SerializeToString(), 1000).points
    assert found.labels == 'a_b="quote\\"\\n",client_1st="y",client_client_id="x"'


def test_histograms_have_buckets_that_add_up() -> None:
    message = MetricsData()
    metric = message.resource_metrics.add().scope_metrics.add().metrics.add(name="app.latency")
    metric.histogram.aggregation_temporality = 2
    metric.histogram.data_points.add(count=6, sum=4.5, bucket_counts=[1, 2, 3], explicit_bounds=[0.1, 1])
    found = read_push(0, message.SerializeToString(), 1000).points
    assert [(each.name + each.suffix, each.labels, each.value) for each in found] == [
        ("client_app_latency_bucket", 'le="0.1"', 1),
        ("client_app_latency_bucket", 'le="1"', 3),
        ("client_app_latency_bucket", 'le="+Inf"', 6),
        ("client_app_latency_sum", "", 4.5),
        ("client_app_latency_count", "", 6),
    ]
