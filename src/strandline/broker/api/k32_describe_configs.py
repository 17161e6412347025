"""DescribeConfigs (key 32), versions 1 to 4: every setting of topics, brokers and groups, with where it comes from.

Errors by resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST. Differs from Kafka: a broker has no loggers whose level
could be set, so the list of them is empty; client metrics subscriptions, of which there are none, are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.topics import invalid_topic_name
from strandline.broker.connection import RequestContext
from strandline.config import ConfigEntry
from strandline.controller.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
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

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DescribeConfigsRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    results = []
    for resource in request.resources:
        try:
            entries = _entries(broker, resource)
            code, message = ErrorCode.NONE, ""
        except KafkaError as error:
            entries = ()
            code, message = ErrorCode(error.code), error.message
        results.append(
            DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=tuple(_answer(entry, request) for entry in entries),
            )
        )
    return DescribeConfigsResponse(throttle_time_ms=0, results=tuple(results))


def _entries(broker: Broker, resource: DescribeConfigsResource) -> tuple[ConfigEntry, ...]:
    wanted = resource.configuration_keys
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        problem = invalid_topic_name(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name not in broker.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        return broker.configs.describe_topic(name, wanted)
    if resource.resource_type == BROKER_RESOURCE:
        if name and name != str(broker.node_id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"This is broker {broker.node_id}; ask broker {name!r} for its configs.",
            )
        return broker.configs.describe_broker(broker.node_id if name else None, wanted)
    if resource.resource_type == BROKER_LOGGER_RESOURCE:
        if name != str(broker.node_id):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"This is broker {broker.node_id}, not {name!r}.")
        return ()
    if resource.resource_type == GROUP_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return broker.configs.describe_group(name, wanted)
    raise KafkaError(
        ErrorCode.INVALID_REQUEST, f"Resources of type {resource.resource_type} have no configs."
    )


def _answer(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
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
