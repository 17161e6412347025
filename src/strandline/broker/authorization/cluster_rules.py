"""Rules for requests about the cluster, which are allowed or denied as a whole by one operation on the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.reduction import (
    MESSAGES,
    Reduction,
    blank,
    denied,
    denied_as_whole,
    element_of,
    mirrored,
)
from strandline.controller.acls import refuse_create_acls, refuse_delete_acls
from strandline.rpc.channel import response_class
from strandline.wire.schema import Message, Request

_CODE: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_MESSAGE: Final = MESSAGES[_CODE]


def check_cluster(access: RequestAccess, request: Request, operation: int) -> Reduction | None:
    """Allows requests that need one operation on the cluster."""
    return None if access.allows_on_cluster(operation) else cluster_denied(request)


def cluster_denied(request: Request) -> Reduction:
    refuse = _REFUSALS.get(request.API_KEY)
    return denied_as_whole(request, _CODE) if refuse is None else denied(refuse(request))


def _error() -> KafkaError:
    return KafkaError(_CODE, _MESSAGE)


def _markers(request: Any) -> Message:
    return _mirrored_array(request, "markers", "markers")


def _log_dirs(request: Any) -> Message:
    cls = response_class(type(request))
    element = element_of(cls, "results")
    results = tuple(
        mirrored(element, topic, _CODE, topic_name=topic.name)
        for each in request.dirs
        for topic in each.topics
    )
    response: Message = blank(cls, results=results)
    return response


def _elections(request: Any) -> Message:
    cls = response_class(type(request))
    element = element_of(cls, "replica_election_results")
    result = element_of(element, "partition_result")
    results = tuple(
        blank(
            element,
            topic=topic.topic,
            partition_result=tuple(mirrored(result, index, _CODE) for index in topic.partitions),
        )
        for topic in request.topic_partitions or ()
    )
    response: Message = blank(cls, error_code=_CODE, replica_election_results=results)
    return response


def _reassignments(request: Any) -> Message:
    response: Any = _mirrored_array(request, "topics", "responses")
    response.error_code, response.error_message = _CODE, _MESSAGE
    return response  # type: ignore[no-any-return]


def _quotas(request: Any) -> Message:
    return _mirrored_array(request, "entries", "entries")


def _users(request: Any) -> Message:
    names = [each.name for each in (*request.deletions, *request.upsertions)]
    cls = response_class(type(request))
    element = element_of(cls, "results")
    results = tuple(
        blank(element, user=name, error_code=_CODE, error_message=_MESSAGE) for name in dict.fromkeys(names)
    )
    response: Message = blank(cls, results=results)
    return response


def _described_users(request: Any) -> Message:
    cls = response_class(type(request))
    element = element_of(cls, "results")
    results = tuple(
        # Kafka leaves the names out.
        blank(element, user="", error_code=_CODE, error_message=_MESSAGE)
        for _ in request.users or ()
    )
    response: Message = blank(cls, error_code=_CODE, error_message=_MESSAGE, results=results)
    return response


def _mirrored_array(request: Any, name: str, response_name: str) -> Message:
    cls = response_class(type(request))
    element = element_of(cls, response_name)
    parts = tuple(mirrored(element, each, _CODE) for each in getattr(request, name))
    response: Message = blank(cls, **{response_name: parts})
    return response


# Requests whose responses have the error in another place than a code of the whole.
_REFUSALS: Final[dict[int, Callable[[Any], Message]]] = {
    27: _markers,
    30: lambda request: refuse_create_acls(request, _error()),
    31: lambda request: refuse_delete_acls(request, _error()),
    34: _log_dirs,
    43: _elections,
    45: _reassignments,
    49: _quotas,
    50: _described_users,
    51: _users,
}
