"""The member as a heartbeat of the consumer protocol describes it."""

from __future__ import annotations

from typing import NamedTuple

from strandline.base.tokens import Token
from strandline.groups.consumer.group import ConsumerGroupMember
from strandline.groups.members import Caller
from strandline.wire.api.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class Join(NamedTuple):
    """A first heartbeat, and the token of its response."""

    request: ConsumerGroupHeartbeatRequest
    caller: Caller
    token: Token

    def is_plain(self) -> bool:
        """True if the member is neither static nor has a regular expression: then nothing depends on the present
        members."""
        request = self.request
        return (
            bool(request.member_id)
            and bool(request.subscribed_topic_names)
            and not request.subscribed_topic_regex
            and request.instance_id is None
        )


def says_nothing_new(
    request: ConsumerGroupHeartbeatRequest, known: ConsumerGroupMember, caller: Caller
) -> bool:
    """Returns True if the request has nothing but an epoch and perhaps the member's partitions, as most heartbeats
    do."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == -1
        and request.rack_id is None
        and request.instance_id == known.instance_id
        and caller.client_id == known.client_id
        and caller.client_host == known.client_host
        and known.classic is None
    )


def as_requested(
    request: ConsumerGroupHeartbeatRequest, known: ConsumerGroupMember, caller: Caller
) -> ConsumerGroupMember:
    """Returns the member with the fields that the request has; the others stay."""
    return known._replace(
        instance_id=request.instance_id if request.instance_id is not None else known.instance_id,
        rack_id=request.rack_id if request.rack_id is not None else known.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms
        if request.rebalance_timeout_ms != -1
        else known.rebalance_timeout_ms,
        server_assignor=request.server_assignor
        if request.server_assignor is not None
        else known.server_assignor,
        topic_names=tuple(sorted(set(request.subscribed_topic_names)))
        if request.subscribed_topic_names is not None
        else known.topic_names,
        topic_regex=request.subscribed_topic_regex
        if request.subscribed_topic_regex is not None
        else known.topic_regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def heartbeat_refused(code: int, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0, error_code=code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )
