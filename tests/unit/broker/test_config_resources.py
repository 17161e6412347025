"""ListConfigResources and DescribeConfigs know of the same resources."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.api.k74_list_config_resources import ListConfigResourcesRequest
from tests.unit.broker.requests import create
from tests.unit.broker.world import World, in_world


@in_world()
async def test_what_is_listed_can_be_described(world: World) -> None:
    client = world.connect()
    await create(client)
    listed = (await client.call(ListConfigResourcesRequest(), 1)).config_resources
    assert {each.resource_type for each in listed} == {2, 4, 8}, "topics, brokers, brokers' loggers"
    resources = tuple(
        DescribeConfigsResource(
            resource_type=each.resource_type, resource_name=each.resource_name, configuration_keys=None
        )
        for each in listed
    )
    answer = await client.call(DescribeConfigsRequest(resources=resources), 4)
    assert {result.error_code for result in answer.results} == {ErrorCode.NONE}
