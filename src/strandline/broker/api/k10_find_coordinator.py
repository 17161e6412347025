"""FindCoordinator (key 10), versions 0 to 6: finds the coordinator of a group or a transactional id.

The first request creates `__consumer_offsets` or `__transaction_state`. Errors: INVALID_GROUP_ID,
COORDINATOR_NOT_AVAILABLE, INVALID_REQUEST for an unknown type of key. Differs from Kafka: there are no share groups, so
their keys get INVALID_REQUEST also from version 6 on, and clients do not retry.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.metadata_response import brokers_seen_by
from strandline.broker.api.services import Services
from strandline.broker.coordinator.shards import CoordinatorShards
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

REQUEST = FindCoordinatorRequest
_GROUP: Final = 0
_TRANSACTION: Final = 1


async def handle(
    services: Services, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if context.api_version < 4:
        found = await _find(services, context, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    coordinators = [await _find(services, context, request.key_type, key) for key in request.coordinator_keys]
    return FindCoordinatorResponse(coordinators=tuple(coordinators))


async def _find(services: Services, context: RequestContext, kind: int, key: str) -> Coordinator:
    try:
        shards: CoordinatorShards[Any]
        if kind == _GROUP:
            shards = services.groups
        elif kind == _TRANSACTION:
            shards = services.transactions
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There are no coordinators of type {kind}.")
        await shards.ensure_topic()
        leader = shards.leader_of(key)
        load = shards.first_load(key)
        if load is not None:
            await asyncio.shield(load)
        for node in brokers_seen_by(services, context.connection.listener):
            if node.node_id == leader:
                return Coordinator(
                    key=key,
                    node_id=leader,
                    host=node.host,
                    port=node.port,
                    error_code=ErrorCode.NONE,
                    # Kafka has this message only in versions for several keys.
                    error_message="NONE" if context.api_version < 4 else "",
                )
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator has no leader at the moment.")
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message
        )
