"""Rules for requests that create, change and remove topics, configs and delegation tokens, and describe the cluster."""

from __future__ import annotations

from typing import Any, Final

from strandline.base.acls import AclOperation, AclResource
from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.reduction import (
    MESSAGES,
    Reduction,
    blank,
    denied,
    denied_as_whole,
    without_denied,
)
from strandline.controller.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from strandline.wire.api.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
from strandline.wire.api.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest
from strandline.wire.api.k38_create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from strandline.wire.api.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_OP = AclOperation
_TOPIC_CODE: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_CLIENT_METRICS_RESOURCE: Final = 16
_TOPIC_IDS_FROM: Final = 6
# The resource type of the rules, and the error, by the type of a resource with configs.
_CONFIG_RESOURCES: Final = {
    TOPIC_RESOURCE: (AclResource.TOPIC, _TOPIC_CODE),
    GROUP_RESOURCE: (AclResource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}
_CLUSTER_RESOURCES: Final = (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, _CLIENT_METRICS_RESOURCE)


def create_topics(access: RequestAccess, request: CreateTopicsRequest) -> Reduction:
    """Allows topics of CreateTopics. A user who may not describe a topic's configs does not get them in the
    response."""
    reduction = None
    if not access.allows_on_cluster(_OP.CREATE, is_act=False):
        reduction = without_denied(
            request, "topics", lambda topic: access.allows_on_topic(_OP.CREATE, topic.name), _TOPIC_CODE
        )

    def merge(response: CreateTopicsResponse | None) -> Any:
        for topic in () if response is None else response.topics:
            if topic.error_code == ErrorCode.NONE and not access.allows_on_topic(
                _OP.DESCRIBE_CONFIGS, topic.name, is_act=False
            ):
                topic.topic_config_error_code = _TOPIC_CODE
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = ()
        return response if reduction is None else reduction.merge(response)

    return Reduction(request if reduction is None else reduction.request, merge)


def delete_topics(access: RequestAccess, request: DeleteTopicsRequest) -> Reduction | None:
    """Allows topics of DeleteTopics. A topic that the user may not describe is denied whether it exists or not."""
    if access.allows_on_cluster(_OP.DELETE, is_act=False):
        return None
    allowed: list[DeleteTopicState] = []
    refused: list[DeletableTopicResult] = []
    for topic in request.topics or [DeleteTopicState(name=name) for name in request.topic_names]:
        denial = _denied_deletion(access, topic)
        if denial is None:
            allowed.append(topic)
        else:
            refused.append(denial)
    if not refused:
        return None
    if access.version >= _TOPIC_IDS_FROM:
        request.topics = tuple(allowed)
    else:
        request.topic_names = tuple(topic.name or "" for topic in allowed)

    def merge(response: DeleteTopicsResponse | None) -> DeleteTopicsResponse:
        whole = response or DeleteTopicsResponse(throttle_time_ms=0, responses=())
        whole.responses += tuple(refused)
        return whole

    return Reduction(request if allowed else None, merge)


def _denied_deletion(access: RequestAccess, topic: DeleteTopicState) -> DeletableTopicResult | None:
    name = topic.name
    is_by_id = name is None and topic.topic_id != ZERO_UUID
    if is_by_id:
        name = access.topic_name(topic.topic_id)
    if name is None:
        return None  # it does not exist, which every user may know, or is invalid
    may_see = access.allows_on_topic(_OP.DESCRIBE, name, is_act=False)
    is_there = name in access.image.topics
    if may_see and not is_there:
        return None
    if access.allows_on_topic(_OP.DELETE, name) and may_see:
        return None
    return DeletableTopicResult(
        name=name if not is_by_id or may_see else None,
        topic_id=topic.topic_id,
        error_code=_TOPIC_CODE,
        error_message=MESSAGES[_TOPIC_CODE],
    )


def create_partitions(access: RequestAccess, request: CreatePartitionsRequest) -> Reduction | None:
    return without_denied(
        request,
        "topics",
        lambda topic: access.allows_on_topic(_OP.ALTER, topic.name),
        _TOPIC_CODE,
        response_name="results",
    )


def denied_config(access: RequestAccess, operation: int, kind: int, name: str) -> int:
    """Returns the error code for a resource whose configs may not be described or altered; 0 if they may."""
    if kind in _CLUSTER_RESOURCES:
        return 0 if access.allows_on_cluster(operation) else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if kind not in _CONFIG_RESOURCES:
        return 0
    resource, code = _CONFIG_RESOURCES[kind]
    return 0 if access.allows(operation, resource, name) else code


def alter_configs(access: RequestAccess, request: Any) -> Reduction | None:
    """Allows AlterConfigs and IncrementalAlterConfigs. A controller's loggers need CLUSTER_ACTION."""
    codes: dict[int, int] = {}
    for number, resource in enumerate(request.resources):
        operation = _OP.ALTER_CONFIGS
        if access.is_controller_listener and resource.resource_type == BROKER_LOGGER_RESOURCE:
            operation = _OP.CLUSTER_ACTION
        code = denied_config(access, operation, resource.resource_type, resource.resource_name)
        if code:
            codes[number] = code
    if not codes:
        return None
    numbers = {id(resource): number for number, resource in enumerate(request.resources)}
    reduction = without_denied(
        request,
        "resources",
        lambda resource: numbers[id(resource)] not in codes,
        _TOPIC_CODE,
        response_name="responses",
    )
    assert reduction is not None

    def merge(response: Any) -> Any:
        whole: Any = reduction.merge(response)
        refused = whole.responses[-len(codes) :]
        for result, code in zip(refused, codes.values(), strict=True):
            result.error_code, result.error_message = code, MESSAGES[code]
        return whole

    return Reduction(reduction.request, merge)


def create_delegation_token(access: RequestAccess, request: CreateDelegationTokenRequest) -> Reduction | None:
    """Allows every user a token; a token for another user needs CREATE_TOKENS on that user (KIP-373)."""
    requester = access.principal
    if not request.owner_principal_name:
        return None
    kind, name = request.owner_principal_type or "", request.owner_principal_name
    if (kind, name) == (requester.kind, requester.name):
        return None
    if access.allows(_OP.CREATE_TOKENS, AclResource.USER, f"{kind}:{name}"):
        return None
    return denied(
        blank(
            CreateDelegationTokenResponse,
            error_code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            principal_type=kind,
            principal_name=name,
            token_requester_principal_type=requester.kind,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
        )
    )


def describe_cluster(access: RequestAccess, request: DescribeClusterRequest) -> Reduction | None:
    """Allows DescribeCluster on brokers for every user, on controllers only for those who may alter the cluster."""
    if access.is_controller_listener and not access.allows_on_cluster(_OP.ALTER):
        return denied_as_whole(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not request.include_cluster_authorized_operations:
        return None

    def merge(response: DescribeClusterResponse) -> DescribeClusterResponse:
        if response.error_code == ErrorCode.NONE:
            response.cluster_authorized_operations = access.cluster_operations()
        return response

    return Reduction(request, merge)
