"""What a heartbeat of the consumer protocol says of its member."""

from __future__ import annotations

from strandline.groups.consumer_group import ConsumerMember
from strandline.groups.members import Caller
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def says_nothing_new(request: ConsumerGroupHeartbeatRequest, known: ConsumerMember, caller: Caller) -> bool:
    """Most heartbeats have only an epoch, and perhaps what the member holds."""
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
    request: ConsumerGroupHeartbeatRequest, known: ConsumerMember, caller: Caller
) -> ConsumerMember:
    """What a request does not say stays as it was."""
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
