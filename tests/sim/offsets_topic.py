"""An offsets topic whose segments are small enough to be compacted."""

from __future__ import annotations

import asyncio

from strandline.sim.wire_client import WireClient
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def commit(client: WireClient, group: str, offset: int) -> int:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
    )
    response = await client.request(request, OffsetCommitResponse, version=8)
    return response.topics[0].partitions[0].error_code


async def committed(client: WireClient, group: str) -> int:
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))
    while True:
        response = await client.request(request, OffsetFetchResponse, version=8)
        group = response.groups[0]
        if group.error_code == 0:
            return group.topics[0].partitions[0].committed_offset if group.topics else -1
        await asyncio.sleep(0.05)  # the coordinator is loading


async def make_offsets_topic(client: WireClient) -> None:
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=("g0",))
    while (await client.request(asked, FindCoordinatorResponse)).coordinators[0].error_code != 0:
        await asyncio.sleep(0.05)


async def make_small_segments(client: WireClient, topic: str) -> None:
    """Has segments closed sooner than the settings at the start allow."""
    change = AlterableConfig(name="internal.segment.bytes", config_operation=0, value="2000")
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    response = await client.request(request, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0, response.responses[0].error_message
