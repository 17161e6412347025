"""Requests that follow the format and mean harm: they get a response or their connection is closed, and that is all."""

from __future__ import annotations

import time

import pytest

from strandline.base.errors import ErrorCode
from strandline.wire.api.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.api.k03_metadata import MetadataRequest
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.api.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.api.k33_alter_configs import AlterConfigsRequest, AlterConfigsResource
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from strandline.wire.api.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from strandline.wire.codec import encode
from strandline.wire.headers import RequestHeader
from strandline.wire.record_batch import CONTROL_FLAG, Record, build_batch
from strandline.wire.schema import Request
from tests.batches import BODY_AT, NOW_MS, batch, resealed
from tests.group_requests import fitted, join
from tests.unit.broker.requests import append, append_error, create, fetch, fetched, list_offset, new_topics
from tests.unit.broker.world import World, in_world

LONG = "\x00" * 32_700  # each character is four in a quotation


LONG_NAMES: dict[str, tuple[Request, int]] = {
    "CreateTopics": (new_topics(LONG, LONG), 2),
    "CreatePartitions": (
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name=LONG, count=2, assignments=None),),
            timeout_ms=1,
            validate_only=False,
        ),
        0,
    ),
    "AlterConfigs": (
        AlterConfigsRequest(
            resources=(AlterConfigsResource(resource_type=2, resource_name=LONG, configs=()),),
            validate_only=False,
        ),
        0,
    ),
    "AlterConfigs of a broker": (
        AlterConfigsRequest(
            resources=(AlterConfigsResource(resource_type=4, resource_name=LONG, configs=()),),
            validate_only=False,
        ),
        0,
    ),
    "IncrementalAlterConfigs": (
        IncrementalAlterConfigsRequest(
            resources=(IncrementalResource(resource_type=2, resource_name=LONG, configs=()),),
            validate_only=False,
        ),
        0,
    ),
    "DescribeConfigs": (
        DescribeConfigsRequest(
            resources=(DescribeConfigsResource(resource_type=4, resource_name=LONG, configuration_keys=None),)
        ),
        1,
    ),
}


@pytest.mark.parametrize("what", LONG_NAMES)
def test_name_as_long_as_can_be_is_refused_with_a_response(what: str, tmp_path: object) -> None:
    @in_world()
    async def scenario(world: World) -> None:
        request, version = LONG_NAMES[what]
        response = await world.connect().call(request, version)
        results = (
            getattr(response, "topics", None) or getattr(response, "results", None) or response.responses
        )
        assert all(result.error_code != ErrorCode.NONE for result in results)

    scenario(tmp_path)


@in_world(strandline_record_validation="header")
async def test_records_that_cannot_be_read_harm_nobody_who_looks_for_a_time(world: World) -> None:
    """They come in where only headers are checked; their batch has a good header and a good CRC."""
    client = world.connect()
    await create(client)
    garbage = batch(2)[:BODY_AT] + b"\xff" * 30
    await append(client, resealed(garbage, length=49 + 30))
    await append(client, resealed(garbage, length=49 + 30, attributes=4))
    for timestamp in (NOW_MS, NOW_MS + 1, -3):
        found = await list_offset(client, timestamp)
        assert (found.error_code, found.offset) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("codec", ["gzip", "uncompressed"])
def test_records_with_numbers_beyond_64_bits_are_refused_where_they_are_read(
    codec: str, tmp_path: object
) -> None:
    @in_world(compression_type=codec)
    async def scenario(world: World) -> None:
        client = world.connect()
        await create(client)
        made = build_batch([Record(0, NOW_MS, b"k", b"v")], attributes=2)
        # A timestamp delta of ten bytes, all ones.
        record = b"\x00" + b"\xff" * 9 + b"\x7f" + b"\x00\x02k\x02v\x00"
        body = bytes((2 * len(record),)) + record
        forged = resealed(
            made[:BODY_AT] + body, length=49 + len(body), attributes=1 if codec != "gzip" else 0
        )
        assert await append_error(client, forged) == ErrorCode.INVALID_RECORD
        highest = resealed(made, base_timestamp=(1 << 63) - 1, max_timestamp=0)
        assert await append_error(client, highest) in (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP)
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0

    scenario(tmp_path)


@in_world()
async def test_thousands_of_names_in_one_request_take_no_longer_each(world: World) -> None:
    """Kafka's own clients ask for the offsets of thousands of partitions at once; the loop must not stand still."""
    client = world.connect()
    await create(client, partitions=1)
    asked = tuple(ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(20_000))
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=asked),))
    begin = time.perf_counter()
    response = await client.call(request, 5)
    assert len(response.topics[0].partitions) == 20_000
    response = await client.call(new_topics(*(f"bad name {n}" for n in range(10_000))), 7)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
    growing = tuple(CreatePartitionsTopic(name=f"n{n}", count=2, assignments=None) for n in range(20_000))
    request = CreatePartitionsRequest(topics=growing, timeout_ms=1, validate_only=False)
    assert len((await client.call(request, 3)).results) == 20_000
    resources = tuple(
        IncrementalResource(resource_type=2, resource_name=f"n{n}", configs=()) for n in range(20_000)
    )
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    assert len((await client.call(request, 1)).responses) == 20_000
    assert time.perf_counter() - begin < 10, "compared each with each other, this takes minutes"


@in_world()
async def test_clients_cannot_write_control_records(world: World) -> None:
    client = world.connect()
    await create(client)
    assert await append_error(client, resealed(batch(1), attributes=CONTROL_FLAG)) == ErrorCode.INVALID_RECORD
    assert fetched(await client.call(fetch((0, 0)), 12))[0].high_watermark == 0


@in_world()
async def test_numbers_at_the_edges_get_a_response(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    edges = (-(1 << 31), -1, 0, 1, (1 << 31) - 1)
    for size in edges:
        for wait in (-(1 << 31), 0):
            for minimum in edges[:3]:
                request = fetch((0, 0), wait_ms=wait, partition_bytes=size, max_bytes=size, min_bytes=minimum)
                assert fetched(await client.call(request, 12))[0].error_code == ErrorCode.NONE
    for timestamp in (-(1 << 63), -7, -6, (1 << 63) - 1, 0):
        found = await list_offset(client, timestamp)
        assert found.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    for offset in (-(1 << 63), -1, 2, (1 << 63) - 1):
        got = fetched(await client.call(fetch((0, offset)), 12))[0]
        assert got.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@in_world(log_segment_bytes="1048576")
async def test_metadata_larger_than_a_topic_s_segment_is_still_written(world: World) -> None:
    """Segments of topics are one thing, those of the metadata log another: 10,000 partitions need a megabyte."""
    long = CreatableTopicConfig(name="leader.replication.throttled.replicas", value=",".join(["0:1"] * 8000))
    topics = tuple(
        CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1, assignments=(), configs=(long,))
        for n in range(50)
    )
    response = await world.connect().call(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.NONE}
    assert (world.data / "__cluster_metadata-0" / "00000000000000000000.log").stat().st_size > 1_500_000


@in_world(group_initial_rebalance_delay_ms="0")
async def test_a_response_that_cannot_be_written_closes_its_connection_and_nothing_else(world: World) -> None:
    """A member's id begins with its client's: with one as long as can be it does not fit into the response."""
    client = world.connect()
    await client.call(FindCoordinatorRequest(key="g", key_type=0), 2)
    header = RequestHeader(
        request_api_key=11, request_api_version=2, correlation_id=7, client_id="c" * 32_760
    )
    frame = encode(header, 1) + encode(fitted(join("g"), 2), 2)
    client.give(len(frame).to_bytes(4, "big") + bytes(frame))
    with pytest.raises(ConnectionError):
        await client.frame()
    world.check()
    assert (await world.connect().call(MetadataRequest(topics=()), 9)).cluster_id == "c"
