"""Large responses: others are served while one is made, and parts that have not changed are not made again."""

from __future__ import annotations

from typing import Any

from strandline.broker.server.response_cache import CACHED_MAX, ResponseCache
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.unit.broker.requests import create, delete_topic
from tests.unit.broker.world import Client, World, in_world

ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False)


async def partition_counts(client: Client, request: MetadataRequest, version: int = 12) -> dict[str, int]:
    response = await client.call(request, version)
    return {topic.name: len(topic.partitions) for topic in response.topics}


@in_world()
async def test_others_are_served_while_a_large_response_is_made(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client, "large", 600)
    named = MetadataRequest(topics=(MetadataRequestTopic(name="large"),), allow_auto_topic_creation=False)
    for request in (ALL_TOPICS, named):
        world.workers.hold()
        client.ask(request, 12)
        await other.call(ApiVersionsRequest(), 0)
        assert await client.is_silent()
        world.workers.go_on()
        _, response = await client.response(MetadataRequest, 12)
        assert len(response.topics[0].partitions) == 600


@in_world()
async def test_metadata_of_all_topics_is_made_once_until_something_changes(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client, "large", 600)
    assert await partition_counts(client, ALL_TOPICS) == {"large": 600}
    world.workers.hold()
    assert await partition_counts(other, ALL_TOPICS) == {"large": 600}, "without a worker"
    world.workers.go_on()
    await create(client, "other")
    assert await partition_counts(other, ALL_TOPICS) == {"large": 600, "other": 1}
    assert await partition_counts(other, ALL_TOPICS, 9) == {"large": 600, "other": 1}
    await delete_topic(client, "large")
    assert await partition_counts(other, ALL_TOPICS) == {"other": 1}


@in_world()
async def test_a_request_during_the_making_of_a_response_gets_the_changes_since(world: World) -> None:
    first, second = world.connect(), world.connect()
    await create(first, "large", 600)
    world.workers.hold()
    first.ask(ALL_TOPICS, 12)
    assert await first.is_silent()
    image = world.broker.image
    image.version += 1  # as a record does
    second.ask(ALL_TOPICS, 12)
    image.topics["large"].partitions[7].leader_epoch = 5
    world.workers.go_on()
    epochs = []
    for client in (first, second):
        _, response = await client.response(MetadataRequest, 12)
        epochs.append(response.topics[0].partitions[7].leader_epoch)
    assert epochs == [0, 5]


def test_few_responses_are_kept_and_none_that_is_older_than_the_request() -> None:
    kept = ResponseCache()
    for number in range(CACHED_MAX + 1):
        kept.put(number, 7, "brokers", b"response")
    assert kept.find(0, 7, "brokers") is None
    assert kept.find(1, 7, "brokers") == kept.find(1, 6, "brokers") == b"response"
    assert kept.find(1, 8, "brokers") is None
    assert kept.find(1, 7, "other brokers") is None


@in_world()
async def test_configs_of_many_topics_are_those_of_each(world: World) -> None:
    client, other = world.connect(), world.connect()
    for number in range(12):
        await create(client, f"t{number}", **({"retention_ms": str(number % 4)} if number % 3 else {}))
    asked = tuple(
        DescribeConfigsResource(resource_type=2, resource_name=f"t{number}", configuration_keys=keys)
        for number in (*range(12), 99)
        for keys in (None, ("retention.ms",))
    )

    def request(resources: tuple[Any, ...]) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=False)

    each = [(await client.call(request((resource,)), 4)).results[0] for resource in asked]
    world.workers.hold()
    client.ask(request(asked), 4)
    await other.call(ApiVersionsRequest(), 0)
    assert await client.is_silent()
    world.workers.go_on()
    _, response = await client.response(DescribeConfigsRequest, 4)
    assert list(response.results) == each
