"""Authorization of Produce and Fetch, whose handlers decode their requests by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from strandline.base.acls import AclOperation, AclResource
from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.fetch_response import TOPIC_IDS_FROM
from strandline.broker.api.services import Services
from strandline.broker.authorization.node_authorizer import NodeAuthorizer
from strandline.broker.authorization.reduction import MESSAGES
from strandline.broker.replication.fetch_sessions import Fetch
from strandline.broker.server.request_context import Body, RequestContext
from strandline.wire.api.k01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from strandline.wire.codec import encode

_NONE: Final[Mapping[int, KafkaError]] = MappingProxyType({})
_TOPIC: Final = int(AclResource.TOPIC)
_WRITE_BIT: Final = 1 << AclOperation.WRITE
_READ_BIT: Final = 1 << AclOperation.READ


def _error(code: ErrorCode) -> KafkaError:
    return KafkaError(code, MESSAGES[code])


class ProducedTopic(Protocol):
    @property
    def name(self) -> str: ...


class ProducedPiece(Protocol):
    @property
    def topic_number(self) -> int: ...


def denied_pieces(
    authorizer: NodeAuthorizer,
    context: RequestContext,
    transactional_id: str | None,
    topics: Sequence[ProducedTopic],
    pieces: Sequence[ProducedPiece],
) -> Mapping[int, KafkaError]:
    """Returns the errors of the denied partitions of a Produce request, by their places.

    `transactional_id` is that of a request with transactional records; topics with an unknown id have empty names.
    """
    if transactional_id is None and not authorizer.events.is_debug:
        operations = authorizer.rights_of(context).operations
        for topic in topics:
            if topic.name and not operations(_TOPIC, topic.name) & _WRITE_BIT:
                break
        else:
            authorizer.decisions.add_allowed(len(topics))
            return _NONE  # the usual case
    access = authorizer.access_of(context)
    if transactional_id is not None and not access.allows(
        AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, transactional_id
    ):
        error = _error(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return dict.fromkeys(range(len(pieces)), error)
    is_allowed = [
        not topic.name or access.allows_on_topic(AclOperation.WRITE, topic.name) for topic in topics
    ]
    if all(is_allowed):
        return {}
    error = _error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return {place: error for place, piece in enumerate(pieces) if not is_allowed[piece.topic_number]}


def deny_partitions(services: Services, context: RequestContext, fetch: Fetch, *, is_follower: bool) -> None:
    """Marks the partitions of a session that this request may not read.

    A follower needs CLUSTER_ACTION, and a consumer READ on each topic. Rules may change between two requests of one
    session.
    """
    if services.authorizer is None:
        return
    authorizer = services.authorizer
    if not is_follower and not authorizer.events.is_debug:
        operations = authorizer.rights_of(context).operations
        by_id, denied = services.image.topics_by_id, False
        for partition in fetch.partitions:
            name = partition.topic
            if not name and (topic := by_id.get(partition.topic_id)) is not None:
                name = topic.name
            partition.is_denied = bool(name) and not operations(_TOPIC, name) & _READ_BIT
            denied = denied or partition.is_denied
        if not denied:
            authorizer.decisions.add_allowed(len(fetch.partitions))
            return  # the usual case
    access = authorizer.access_of(context)
    if is_follower:
        is_denied = not access.allows_on_cluster(AclOperation.CLUSTER_ACTION)
        for partition in fetch.partitions:
            partition.is_denied = is_denied
        return
    verdicts: dict[str, bool] = {"": False}
    for partition in fetch.partitions:
        name = partition.topic or services.node.topic_name(partition.topic_id)
        if name not in verdicts:
            verdicts[name] = not access.allows_on_topic(AclOperation.READ, name)
        partition.is_denied = verdicts[name]


def denial_of_metadata(services: Services, context: RequestContext, request: FetchRequest) -> Body | None:
    """Returns the response to a Fetch of the metadata log from a user who is no node of the cluster; None for a
    node."""
    if services.authorizer is None or services.authorizer.access_of(context).allows_on_cluster(
        AclOperation.CLUSTER_ACTION
    ):
        return None
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    # Before version 13 every partition has the error too, as in Kafka.
    responses = tuple(
        FetchableTopicResponse(
            topic=topic.topic,
            partitions=tuple(_denied(each.partition, code) for each in topic.partitions),
        )
        for topic in request.topics
        if context.api_version < TOPIC_IDS_FROM
    )
    response = FetchResponse(throttle_time_ms=0, error_code=code, responses=responses)
    return (encode(response, context.api_version),)


def _denied(partition: int, code: int) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
