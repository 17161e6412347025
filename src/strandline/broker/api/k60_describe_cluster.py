"""DescribeCluster (key 60), versions 0 to 2: cluster id, controller and brokers, or controllers on their own listener.

Errors: MISMATCHED_ENDPOINT_TYPE for a type that another listener serves, UNSUPPORTED_ENDPOINT_TYPE for other types.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode
from strandline.broker.api.metadata_response import CLUSTER_OPERATIONS, NOT_REQUESTED, any_live_broker_id
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

REQUEST = DescribeClusterRequest
_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(
    services: Services, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    served = _CONTROLLERS if context.connection.is_controller_listener else _BROKERS
    if request.endpoint_type != served:
        return _refused(request.endpoint_type, served)
    if served == _CONTROLLERS:
        return _controllers(services, context, request)
    states = (
        list(services.image.brokers.values())
        if request.include_fenced_brokers
        else services.image.live_brokers()
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
        cluster_id=services.cluster_id,
        controller_id=any_live_broker_id(services.image),
        brokers=tuple(brokers),
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_REQUESTED,
    )


def _refused(requested: int, served: int) -> DescribeClusterResponse:
    is_known = requested in (_BROKERS, _CONTROLLERS)
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    who = "brokers' clients" if served == _BROKERS else "controllers"
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=f"This listener serves {who}; request endpoint type {served}.",
        cluster_id="",
        brokers=(),
    )


def _controllers(
    services: Services, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Returns the controllers that have registered (KIP-919), and the leader, which is known before its
    registration."""
    quorum = services.quorum
    nodes: dict[int, tuple[str, int]] = {
        controller.controller_id: (endpoint.host, endpoint.port)
        for controller in services.image.controllers.values()
        for endpoint in controller.end_points
        if endpoint.name == context.connection.listener
    }
    if quorum.leader_address is not None:
        nodes[quorum.leader_id] = quorum.leader_address
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        endpoint_type=_CONTROLLERS,
        cluster_id=services.cluster_id,
        controller_id=quorum.leader_id if quorum.leader_id in nodes else -1,
        brokers=tuple(
            DescribeClusterBroker(broker_id=node_id, host=host, port=port)
            for node_id, (host, port) in sorted(nodes.items())
        ),
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_REQUESTED,
    )
