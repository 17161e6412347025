"""Metadata (key 3), versions 0 to 13: brokers, topics, partitions and who leads them.

Errors by topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION, and what a failed automatic
creation says. Differs from Kafka: a topic that is created automatically is in this very answer, where Kafka answers
UNKNOWN_TOPIC_OR_PARTITION and has the client ask again; the topic of share groups, which are not offered, is never
created automatically; while a leader is found to be gone the answer waits for the next one (see `absences`).
"""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Iterator
from typing import TYPE_CHECKING, Any, Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, ZERO_UUID
from strandline.base.topics import INTERNAL_TOPICS, SHARE_GROUPS_TOPIC, invalid_topic_name
from strandline.broker.api.metadata_response import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
    brokers_seen_by,
    topic_answer,
)
from strandline.broker.server.connection import Answer, RequestContext
from strandline.broker.server.pending_response import Body
from strandline.broker.server.response_cache import PARTS_AT_ONCE_MAX, encoded_apart, in_turns
from strandline.controller.image import TopicState
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from strandline.wire.codec import DecodeError, decode, encode

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

_NEVER_CREATED: Final = frozenset({METADATA_TOPIC, SHARE_GROUPS_TOPIC})


def handle_raw(broker: Broker, context: RequestContext) -> Answer:
    request = decode(MetadataRequest, context.api_version, context.body, context.position)
    missing = _names_to_create(broker, context, request)
    if missing:
        return _create_and_answer(broker, context, request, missing)
    if broker.absences.concern(_topics(broker, context, request)):
        return _answer_when_decided(broker, context, request)
    return _answer(broker, context, request, {})


def _is_all_topics(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.api_version == 0 and not request.topics)


def _names_to_create(broker: Broker, context: RequestContext, request: MetadataRequest) -> list[str]:
    if (
        _is_all_topics(context, request)
        or not request.allow_auto_topic_creation
        or not broker.auto_creates_topics
    ):
        return []
    names = {t.name: None for t in request.topics or () if t.name is not None and t.topic_id == ZERO_UUID}
    missing = [name for name in names if name not in broker.image.topics and name not in _NEVER_CREATED]
    return [name for name in missing if invalid_topic_name(name) is None]


def _topics(broker: Broker, context: RequestContext, request: MetadataRequest) -> list[TopicState]:
    """The ones that are asked for and exist."""
    image = broker.image
    if _is_all_topics(context, request):
        return list(image.topics.values())
    found = (
        image.topics.get(t.name or "") or image.topics_by_id.get(t.topic_id) for t in request.topics or ()
    )
    return [topic for topic in found if topic is not None]


async def _answer_when_decided(broker: Broker, context: RequestContext, request: MetadataRequest) -> Body:
    await broker.absences.decided()
    answer = _answer(broker, context, request, {})
    return await answer if isinstance(answer, Coroutine) else answer


async def _create_and_answer(
    broker: Broker, context: RequestContext, request: MetadataRequest, missing: list[str]
) -> Body:
    refused = await broker.topic_creation.create_by_name(missing)
    codes = {name: error.code for name, error in refused.items()}
    answer = _answer(broker, context, request, codes)
    return await answer if isinstance(answer, Coroutine) else answer


def _answer(
    broker: Broker, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> Body | Coroutine[Any, Any, Body]:
    is_all = _is_all_topics(context, request)
    topics = _all_topics(broker, request) if is_all else _asked_topics(broker, context, request, refused)
    count = sum(len(topic.partitions) for topic in _topics(broker, context, request))
    if count + len(request.topics or ()) <= PARTS_AT_ONCE_MAX:
        return (encode(_response(broker, context, request, list(topics)), context.api_version),)
    if not is_all:
        return _make_large(broker, context, request, topics)
    kept = _kept(broker, context, request, broker.image.version)
    return (kept,) if kept is not None else _answer_all(broker, context, request)


async def _answer_all(broker: Broker, context: RequestContext, request: MetadataRequest) -> Body:
    asked_at = broker.image.version
    async with broker.kept_metadata.making:
        kept = _kept(broker, context, request, asked_at)
        if kept is not None:
            return (kept,)
        began_at = broker.image.version
        brokers = brokers_seen_by(broker, context.connection.listener)
        (answer,) = await _make_large(broker, context, request, _all_topics(broker, request))
        broker.kept_metadata.keep(_key(context, request), began_at, brokers, answer)
        return (answer,)


async def _make_large(
    broker: Broker,
    context: RequestContext,
    request: MetadataRequest,
    topics: Iterator[MetadataResponseTopic],
) -> tuple[bytes]:
    """Topics that change meanwhile are shown as they were or as they are, each by itself."""
    made = await in_turns(topics, lambda topic: 1 + len(topic.partitions))
    response = _response(broker, context, request, made)
    return (await encoded_apart(broker, response, context.api_version),)


def _key(context: RequestContext, request: MetadataRequest) -> Hashable:
    return (
        context.api_version,
        context.connection.listener,
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
    )


def _kept(broker: Broker, context: RequestContext, request: MetadataRequest, version: int) -> bytes | None:
    """The answer about all topics, if it has been made since the image was at this version."""
    brokers = brokers_seen_by(broker, context.connection.listener)
    return broker.kept_metadata.find(_key(context, request), version, brokers)


def _response(
    broker: Broker, context: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    return MetadataResponse(
        brokers=brokers_seen_by(broker, context.connection.listener),
        cluster_id=broker.cluster_id,
        controller_id=broker.any_live_broker_id(),
        topics=tuple(topics),
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _operations(request: MetadataRequest) -> int:
    return TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED


def _all_topics(broker: Broker, request: MetadataRequest) -> Iterator[MetadataResponseTopic]:
    image = broker.image
    for name in sorted(image.topics):
        topic = image.topics.get(name)
        if topic is not None:  # not deleted meanwhile
            yield topic_answer(image, topic, _operations(request))


def _asked_topics(
    broker: Broker, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> Iterator[MetadataResponseTopic]:
    image, operations = broker.image, _operations(request)
    by_id = [t.topic_id for t in request.topics or () if t.topic_id != ZERO_UUID]
    if (by_id or any(t.name is None for t in request.topics or ())) and context.api_version < 12:
        raise DecodeError(f"Metadata version {context.api_version} with topic ids or without a name")
    for topic_id in dict.fromkeys(by_id):
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            yield _unknown(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            yield topic_answer(image, topic, operations)
    if by_id:
        return
    for name in dict.fromkeys(t.name for t in request.topics or () if t.name is not None):
        topic = image.topics.get(name)
        if topic is not None:
            yield topic_answer(image, topic, operations)
        elif name in refused:
            yield _unknown(name, ZERO_UUID, refused[name])
        elif invalid_topic_name(name) is not None:
            yield _unknown(name, ZERO_UUID, ErrorCode.INVALID_TOPIC_EXCEPTION)
        else:
            yield _unknown(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _unknown(name: str | None, topic_id: bytes, error: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS, partitions=()
    )
