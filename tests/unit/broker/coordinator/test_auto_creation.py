"""Topics that a Metadata request brings into being."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC
from strandline.broker.coordinator.txn_service import TRANSACTIONS_TOPIC
from strandline.config import DynamicConfigs
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.broker.metadata_records import topic as topic_records
from tests.unit.broker.world import World, in_world
from tests.unit.config.settings import started


async def asked(world: World, name: str) -> Any:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True)
    (topic,) = (await world.connect().call(request, 12)).topics
    return topic


@in_world(num_partitions="2", offsets_topic_num_partitions="3", transaction_state_log_num_partitions="4")
async def test_a_coordinator_s_topic_is_made_as_the_coordinator_needs_it(world: World) -> None:
    for name, partitions in ((OFFSETS_TOPIC, 3), (TRANSACTIONS_TOPIC, 4), ("t", 2)):
        topic = await asked(world, name)
        assert (len(topic.partitions), topic.is_internal) == (partitions, name != "t")
    for name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        assert world.broker.configs.topic(name).cleanup_policy == ("compact",)


@pytest.mark.parametrize(("file", "partitions"), [({"num_partitions": "3"}, 3), ({}, 5)])
def test_the_broker_s_own_file_comes_before_the_controller_s_defaults(
    file: dict[str, str], partitions: int, tmp_path: object
) -> None:
    @in_world(**file)
    async def scenario(world: World) -> None:
        runtime = world.broker.controller_runtime
        assert runtime is not None
        runtime.state.configs = DynamicConfigs(started(num_partitions="5"))  # as if on another node
        assert len((await asked(world, "t")).partitions) == partitions

    scenario(tmp_path)


@in_world()
async def test_the_metadata_log_and_the_topic_of_share_groups_are_not_made(world: World) -> None:
    for name in (METADATA_TOPIC, "__share_group_state"):
        assert (await asked(world, name)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert name not in world.broker.image.topics


@in_world()
async def test_a_topic_of_the_metadata_log_s_name_has_no_replica(world: World) -> None:
    """An earlier version made it when it was asked to; it wrote into the metadata log's directory."""
    quorum = world.broker.quorum
    await quorum.append(topic_records(METADATA_TOPIC, 10))
    assert METADATA_TOPIC in world.broker.image.topics
    assert world.broker.replicas.partitions_here() == []
