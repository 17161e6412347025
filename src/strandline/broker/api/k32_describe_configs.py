"""DescribeConfigs (key 32), versions 1 to 4: every setting of topics, brokers, groups and client metrics subscriptions,
with its source.

Errors by resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST. Differs from Kafka: a broker's loggers are those of
Strandline's parts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from strandline.base.acls import AclOperation
from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.topics import invalid_topic_name
from strandline.broker.api.broker_loggers import check_broker, describe_loggers
from strandline.broker.api.services import Services
from strandline.broker.api.topic_access import access_of
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.admin_rules import denied_config
from strandline.broker.authorization.reduction import MESSAGES
from strandline.broker.server.pending_response import Handled, count_errors, encode_counted
from strandline.broker.server.request_context import Body, RequestContext
from strandline.broker.server.response_cache import build_cooperatively, encode_in_worker
from strandline.config import DescribedConfig
from strandline.config.describe import (
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from strandline.controller.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from strandline.wire.api.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from strandline.wire.codec import decode

# Each resource has some dozens of configs, with their synonyms.
_RESOURCES_AT_ONCE_MAX: Final = 10


def handle_raw(services: Services, context: RequestContext) -> Handled:
    request = decode(DescribeConfigsRequest, context.api_version, context.body, context.position)
    results = _results(services, context, request)
    if len(request.resources) <= _RESOURCES_AT_ONCE_MAX:
        return (encode_counted(_response(list(results)), context),)
    return _respond_in_steps(services, context, results)


async def _respond_in_steps(
    services: Services, context: RequestContext, results: Iterator[DescribeConfigsResult]
) -> Body:
    built = await build_cooperatively(results, lambda result: 1 + len(result.configs))
    response = _response(built)
    count_errors(response, context)
    return (await encode_in_worker(services.node.workers, response, context.api_version),)


def _response(results: list[DescribeConfigsResult]) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(throttle_time_ms=0, results=tuple(results))


def _results(
    services: Services, context: RequestContext, request: DescribeConfigsRequest
) -> Iterator[DescribeConfigsResult]:
    access = access_of(services, context)
    # Topics with the same overrides, mostly none, have the same configs, which are computed once for a request.
    shared: dict[Hashable, tuple[DescribeConfigsResourceResult, ...]] = {}
    for resource in request.resources:
        code, message = ErrorCode.NONE, ""
        configs: tuple[DescribeConfigsResourceResult, ...] = ()
        try:
            if access is not None:
                _check_access(access, resource)
            if resource.resource_type == TOPIC_RESOURCE:
                _check_topic(services, resource.resource_name)
                overrides = services.configs.overrides(TOPIC_RESOURCE, resource.resource_name)
                key = (frozenset(overrides.items()), resource.configuration_keys)
                if key not in shared:
                    shared[key] = _described_entries(_entries(services, resource), request)
                configs = shared[key]
            else:
                configs = _described_entries(_entries(services, resource), request)
        except KafkaError as error:
            code, message = ErrorCode(error.code), error.message
        yield DescribeConfigsResult(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )


def _check_access(access: RequestAccess, resource: DescribeConfigsResource) -> None:
    code = denied_config(
        access, AclOperation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name
    )
    if code:
        raise KafkaError(code, MESSAGES[code])


def _check_topic(services: Services, name: str) -> None:
    problem = invalid_topic_name(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name not in services.image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")


def _entries(services: Services, resource: DescribeConfigsResource) -> tuple[DescribedConfig, ...]:
    keys = resource.configuration_keys
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        return describe_topic(services.configs, name, keys)
    if resource.resource_type == BROKER_RESOURCE:
        if name and name != str(services.node.node_id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"This is broker {services.node.node_id}; send the request for its configs to broker {name!r}.",
            )
        return describe_broker(services.configs, services.node.node_id if name else None, keys)
    if resource.resource_type == BROKER_LOGGER_RESOURCE:
        check_broker(services.node.node_id, name)
        return describe_loggers(services.node.events, keys)
    if resource.resource_type == CLIENT_METRICS_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return describe_client_metrics(services.configs, name, keys)
    if resource.resource_type == GROUP_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(services.configs, name, keys)
    raise KafkaError(
        ErrorCode.INVALID_REQUEST, f"Resources of type {resource.resource_type} have no configs."
    )


def _described_entries(
    entries: tuple[DescribedConfig, ...], request: DescribeConfigsRequest
) -> tuple[DescribeConfigsResourceResult, ...]:
    return tuple(_described_entry(entry, request) for entry in entries)


def _described_entry(
    entry: DescribedConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=tuple(DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms),
        config_type=entry.type_code,
        documentation=entry.documentation if request.include_documentation else None,
    )
