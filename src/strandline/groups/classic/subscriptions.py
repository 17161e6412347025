"""The topics that members of a classic group subscribe to, from the opaque bytes of the protocol type `consumer`."""

from __future__ import annotations

from strandline.groups.classic.group import EMPTY, ClassicGroup
from strandline.wire.codec import DecodeError, decode
from strandline.wire.records.consumer_protocol import ConsumerProtocolSubscription

_VERSION_MAX = 3


def parse_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Reads a subscription; a newer version than is known is read as the newest known one, as KIP-429 promises."""
    version = int.from_bytes(metadata[:2], "big", signed=True)
    if len(metadata) < 2 or version < 0:
        raise DecodeError("the subscription has no version of the consumer protocol")
    return decode(ConsumerProtocolSubscription, min(version, _VERSION_MAX), metadata, 2)


def subscribed_topics(group: ClassicGroup) -> set[str] | None:
    """Returns the topics that members subscribe to. None if they are not known: another protocol type, bytes that
    cannot be read, or members that have not joined yet."""
    if not group.members:
        return set() if group.state == EMPTY else None
    if group.protocol_type != "consumer" or group.protocol is None:
        return None
    topics: set[str] = set()
    try:
        for member in group.members.values():
            topics.update(parse_subscription(member.metadata_for(group.protocol)).topics)
    except DecodeError:
        return None
    return topics
