"""Rules for requests about topics and their records."""

from __future__ import annotations

from typing import Any, Final

from strandline.base.acls import AclOperation
from strandline.base.errors import ErrorCode
from strandline.base.topics import invalid_topic_name
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.reduction import Reduction, without_denied

_CODE: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_OP = AclOperation


def list_offsets(access: RequestAccess, request: Any) -> Reduction | None:
    return without_denied(
        request, "topics", lambda topic: access.allows_on_topic(_OP.DESCRIBE, topic.name), _CODE
    )


def delete_records(access: RequestAccess, request: Any) -> Reduction | None:
    return without_denied(
        request,
        "topics",
        lambda topic: access.allows_on_topic(_OP.DELETE, topic.name),
        _CODE,
        low_watermark=-1,
    )


def offset_for_leader_epoch(access: RequestAccess, request: Any) -> Reduction | None:
    """Allows topics of OffsetForLeaderEpoch; brokers may name every topic."""
    if access.allows_on_cluster(_OP.CLUSTER_ACTION, is_act=False):
        return None
    return without_denied(
        request, "topics", lambda topic: access.allows_on_topic(_OP.DESCRIBE, topic.topic), _CODE
    )


def describe_producers(access: RequestAccess, request: Any) -> Reduction | None:
    """Allows topics of DescribeProducers; a name that no topic can have gets its own error."""
    return without_denied(
        request,
        "topics",
        lambda topic: (
            invalid_topic_name(topic.name) is not None or access.allows_on_topic(_OP.READ, topic.name)
        ),
        _CODE,
    )
