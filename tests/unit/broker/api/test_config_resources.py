"""Resources with settings: listed and described alike, and altered by the node that can tell which value fits."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode
from strandline.config import DynamicConfigs
from strandline.wire.api import k33_alter_configs as k33
from strandline.wire.api import k44_incremental_alter_configs as k44
from strandline.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.api.k74_list_config_resources import ListConfigResourcesRequest
from tests.unit.broker.requests import create
from tests.unit.broker.world import World, in_world
from tests.unit.config.settings import started


@in_world()
async def test_listed_resources_can_be_described(world: World) -> None:
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
    response = await client.call(DescribeConfigsRequest(resources=resources), 4)
    assert {result.error_code for result in response.results} == {ErrorCode.NONE}


@pytest.mark.parametrize("broker", ["1", ""])
def test_a_broker_s_settings_are_checked_against_its_own_file(broker: str, tmp_path: object) -> None:
    """A pool may at most be doubled: whether one is depends on the broker, not on the controller."""

    @in_world(num_io_threads="8")
    async def scenario(world: World) -> None:
        runtime = world.broker.controller_runtime
        assert runtime is not None
        runtime.state.configs = DynamicConfigs(started(num_io_threads="40"))  # as if on another node
        for threads, code in (("40", ErrorCode.INVALID_REQUEST), ("16", ErrorCode.NONE)):
            incremental = k44.AlterConfigsResource(
                resource_type=4,
                resource_name=broker,
                configs=(k44.AlterableConfig(name="num.io.threads", config_operation=0, value=threads),),
            )
            replacing = k33.AlterConfigsResource(
                resource_type=4,
                resource_name=broker,
                configs=(k33.AlterableConfig(name="num.io.threads", value=threads),),
            )
            client = world.connect()
            for request, version in (
                (k44.IncrementalAlterConfigsRequest(resources=(incremental,), validate_only=True), 1),
                (k33.AlterConfigsRequest(resources=(replacing,), validate_only=True), 2),
            ):
                (response,) = (await client.call(request, version)).responses
                assert response.error_code == code, response.error_message

    scenario(tmp_path)


@in_world()
async def test_a_broker_that_is_there_twice_is_not_altered_at_all(world: World) -> None:
    changes = [
        k44.AlterConfigsResource(
            resource_type=4,
            resource_name="1",
            configs=(k44.AlterableConfig(name=name, config_operation=0, value="3"),),
        )
        for name in ("node.id", "log.retention.ms")
    ]
    request = k44.IncrementalAlterConfigsRequest(resources=tuple(changes), validate_only=False)
    responses = (await world.connect().call(request, 1)).responses
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2
