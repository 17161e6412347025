"""Metadata (key 3), versions 0 to 13: brokers, topics, partitions and their leaders.

Errors by topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION, and the error of a failed
automatic creation. Differs from Kafka: a topic that is created automatically is in the same response, where Kafka
responds with UNKNOWN_TOPIC_OR_PARTITION and the client requests it again; the topic of share groups, which are not
offered, is never created automatically; when a leader is gone, the response waits for the next one (see
`suspected_brokers`).
"""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Iterator
from typing import Any, Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, ZERO_UUID
from strandline.base.topics import INTERNAL_TOPICS, SHARE_GROUPS_TOPIC, invalid_topic_name
from strandline.broker.api.controller_forwarding import origin_of
from strandline.broker.api.metadata_response import (
    NOT_REQUESTED,
    any_live_broker_id,
    brokers_seen_by,
    topic_response,
)
from strandline.broker.api.services import Services
from strandline.broker.api.topic_access import (
    access_of,
    cluster_operations,
    may_create,
    may_describe,
    topic_operations,
)
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.server.pending_response import Handled, count_errors, encode_counted
from strandline.broker.server.request_context import Body, RequestContext
from strandline.broker.server.response_cache import PARTS_AT_ONCE_MAX, build_cooperatively, encode_in_worker
from strandline.controller.image import TopicState
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from strandline.wire.codec import DecodeError, decode

_NEVER_CREATED: Final = frozenset({METADATA_TOPIC, SHARE_GROUPS_TOPIC})


def handle_raw(services: Services, context: RequestContext) -> Handled:
    request = decode(MetadataRequest, context.api_version, context.body, context.position)
    missing = _names_to_create(services, context, request)
    if missing:
        access = access_of(services, context)
        allowed = missing if access is None else [name for name in missing if may_create(access, name)]
        if allowed:
            return _create_and_respond(services, context, request, allowed)
    if services.suspected_brokers.concern(_topics(services, context, request)):
        return _respond_when_decided(services, context, request)
    return _respond(services, context, request, {})


def _is_all_topics(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.api_version == 0 and not request.topics)


def _names_to_create(services: Services, context: RequestContext, request: MetadataRequest) -> list[str]:
    if _is_all_topics(context, request) or not _creates(services, request):
        return []
    names = {t.name: None for t in request.topics or () if t.name is not None and t.topic_id == ZERO_UUID}
    missing = [name for name in names if name not in services.image.topics and name not in _NEVER_CREATED]
    return [name for name in missing if invalid_topic_name(name) is None]


def _creates(services: Services, request: MetadataRequest) -> bool:
    """Returns True if missing topics are created."""
    is_enabled = bool(services.configs.broker_value("auto.create.topics.enable"))
    return is_enabled and request.allow_auto_topic_creation


def _topics(services: Services, context: RequestContext, request: MetadataRequest) -> list[TopicState]:
    """Returns the requested topics that exist."""
    image = services.image
    if _is_all_topics(context, request):
        return list(image.topics.values())
    found = (
        image.topics.get(t.name or "") or image.topics_by_id.get(t.topic_id) for t in request.topics or ()
    )
    return [topic for topic in found if topic is not None]


async def _respond_when_decided(
    services: Services, context: RequestContext, request: MetadataRequest
) -> Body:
    await services.suspected_brokers.decided()
    response = _respond(services, context, request, {})
    return await response if isinstance(response, Coroutine) else response


async def _create_and_respond(
    services: Services, context: RequestContext, request: MetadataRequest, missing: list[str]
) -> Body:
    refused = await services.topic_creation.create_by_name(missing, origin_of(context))
    codes = {name: error.code for name, error in refused.items()}
    response = _respond(services, context, request, codes)
    return await response if isinstance(response, Coroutine) else response


def _respond(
    services: Services, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> Body | Coroutine[Any, Any, Body]:
    is_all = _is_all_topics(context, request)
    topics = (
        _all_topics(services, context, request)
        if is_all
        else _requested_topics(services, context, request, refused)
    )
    count = sum(len(topic.partitions) for topic in _topics(services, context, request))
    if count + len(request.topics or ()) <= PARTS_AT_ONCE_MAX:
        return (encode_counted(_response(services, context, request, list(topics)), context),)
    if not is_all:
        return _make_large(services, context, request, topics)
    cached = _cached(services, context, request, services.image.version)
    return (cached,) if cached is not None else _respond_with_all(services, context, request)


async def _respond_with_all(services: Services, context: RequestContext, request: MetadataRequest) -> Body:
    version = services.image.version
    async with services.metadata_cache.building:
        cached = _cached(services, context, request, version)
        if cached is not None:
            return (cached,)
        began_at = services.image.version
        brokers = brokers_seen_by(services, context.connection.listener)
        (response,) = await _make_large(services, context, request, _all_topics(services, context, request))
        services.metadata_cache.put(_key(services, context, request), began_at, brokers, response)
        return (response,)


async def _make_large(
    services: Services,
    context: RequestContext,
    request: MetadataRequest,
    topics: Iterator[MetadataResponseTopic],
) -> tuple[bytes]:
    """Makes a large response in steps. A topic that changes meanwhile is in it in its old or its new state."""
    built = await build_cooperatively(topics, lambda topic: 1 + len(topic.partitions))
    response = _response(services, context, request, built)
    count_errors(response, context)
    return (await encode_in_worker(services.node.workers, response, context.api_version),)


def _key(services: Services, context: RequestContext, request: MetadataRequest) -> Hashable:
    # With an authorizer each user has a response of its own.
    viewer = None if services.authorizer is None else (context.principal, context.client_host)
    return (
        viewer,
        context.api_version,
        context.connection.listener,
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
    )


def _cached(
    services: Services, context: RequestContext, request: MetadataRequest, version: int
) -> bytes | None:
    """Returns the response about all topics, if one was made for this version of the image."""
    brokers = brokers_seen_by(services, context.connection.listener)
    return services.metadata_cache.find(_key(services, context, request), version, brokers)


def _response(
    services: Services, context: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    return MetadataResponse(
        brokers=brokers_seen_by(services, context.connection.listener),
        cluster_id=services.cluster_id,
        controller_id=any_live_broker_id(services.image),
        topics=tuple(topics),
        cluster_authorized_operations=cluster_operations(access_of(services, context))
        if request.include_cluster_authorized_operations
        else NOT_REQUESTED,
    )


def _topic_response(
    services: Services, access: RequestAccess | None, request: MetadataRequest, topic: TopicState
) -> MetadataResponseTopic:
    return topic_response(services.image, topic, _operations(access, request, topic.name))


def _operations(access: RequestAccess | None, request: MetadataRequest, name: str) -> int:
    return topic_operations(access, name) if request.include_topic_authorized_operations else NOT_REQUESTED


def _all_topics(
    services: Services, context: RequestContext, request: MetadataRequest
) -> Iterator[MetadataResponseTopic]:
    """Yields all topics, except those that the user may not describe."""
    image, access = services.image, access_of(services, context)
    for name in sorted(image.topics):
        topic = image.topics.get(name)
        if topic is not None and may_describe(access, name, is_act=False):  # it was not deleted meanwhile
            yield _topic_response(services, access, request, topic)


def _requested_topics(
    services: Services, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> Iterator[MetadataResponseTopic]:
    image, access = services.image, access_of(services, context)
    by_id = [t.topic_id for t in request.topics or () if t.topic_id != ZERO_UUID]
    if (by_id or any(t.name is None for t in request.topics or ())) and context.api_version < 12:
        raise DecodeError(f"Metadata version {context.api_version} with topic ids or without a name")
    for topic_id in dict.fromkeys(by_id):
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            yield _unknown(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not may_describe(access, topic.name):
            yield _unknown(None, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            yield _topic_response(services, access, request, topic)
    if by_id:
        return
    for name in dict.fromkeys(t.name for t in request.topics or () if t.name is not None):
        topic = image.topics.get(name)
        if not may_describe(access, name):
            yield _denied(name)
        elif topic is not None:
            yield _topic_response(services, access, request, topic)
        elif access is not None and _creates(services, request) and not may_create(access, name):
            yield _unknown(name, ZERO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if invalid_topic_name(name) is not None:
                code = ErrorCode.INVALID_TOPIC_EXCEPTION
            unknown = _unknown(name, ZERO_UUID, refused.get(name, code))
            unknown.topic_authorized_operations = _operations(access, request, name)
            yield unknown


def _denied(name: str) -> MetadataResponseTopic:
    """Returns the denial of a topic, which does not show whether the topic exists or is internal."""
    return MetadataResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=False,
        partitions=(),
    )


def _unknown(name: str | None, topic_id: bytes, error: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS, partitions=()
    )
