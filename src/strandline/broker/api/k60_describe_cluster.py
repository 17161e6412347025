"""DescribeCluster (key 60), versions 0 to 2: cluster id, controller and brokers.

Errors: MISMATCHED_ENDPOINT_TYPE for a request that wants controllers, UNSUPPORTED_ENDPOINT_TYPE for other types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode
from strandline.broker.connection import RequestContext
from strandline.broker.metadata_answers import CLUSTER_OPERATIONS, NOT_ASKED
from strandline.wire.api.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DescribeClusterRequest
_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        if request.endpoint_type == _CONTROLLERS:
            code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        return DescribeClusterResponse(
            throttle_time_ms=0,
            error_code=code,
            error_message="This listener serves brokers' clients; ask for endpoint type 1.",
            cluster_id="",
            brokers=(),
        )
    states = (
        list(broker.image.brokers.values()) if request.include_fenced_brokers else broker.image.live_brokers()
    )
    brokers = []
    for state in states:
        endpoint = state.endpoint(context.connection.listener)
        if endpoint is not None:
            brokers.append(
                DescribeClusterBroker(
                    broker_id=state.node_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=state.rack,
                    is_fenced=state.fenced if context.api_version >= 2 else False,
                )
            )
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        cluster_id=broker.cluster_id,
        controller_id=broker.any_live_broker_id(),
        brokers=tuple(brokers),
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
