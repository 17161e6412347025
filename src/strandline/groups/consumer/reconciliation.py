"""One member's next step from its present assignment towards its target (KIP-848, "Member reconciliation").

1. Partitions that are not in the target are revoked first. The member stays at its epoch until it no longer reports
   them.
2. Then the member gets the partitions of its target, except those that another member still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from strandline.groups.consumer.group import (
    STABLE,
    UNRELEASED,
    UNREVOKED,
    ConsumerGroupMember,
    Owned,
)

# The partitions that a member reports, by topic id; None if its heartbeat does not report any.
Reported = Mapping[bytes, tuple[int, ...]] | None


def reconcile(
    owner_of: Callable[[bytes, int], str | None],
    member: ConsumerGroupMember,
    target_epoch: int,
    target: Mapping[bytes, tuple[int, ...]],
    subscribed: frozenset[bytes],
    subscription_changed: bool,
    reported: Reported,
) -> ConsumerGroupMember:
    """Returns the member after this heartbeat; the same object if nothing changes."""
    if member.state == STABLE and member.epoch == target_epoch:
        return _drop_unsubscribed(member, subscribed, reported) if subscription_changed else member
    if member.state == UNREVOKED and _still_holds(member.revoking, reported):
        return _drop_unsubscribed(member, subscribed, reported) if subscription_changed else member
    return _advance(owner_of, member, target_epoch, target, subscribed, reported)


def _still_holds(revoking: Owned, reported: Reported) -> bool:
    if reported is None:
        return True
    return any(
        index in revoking.get(topic_id, ()) for topic_id, indexes in reported.items() for index in indexes
    )


def _drop_unsubscribed(
    member: ConsumerGroupMember, subscribed: frozenset[bytes], reported: Reported
) -> ConsumerGroupMember:
    """Revokes partitions of topics that the member no longer subscribes to, before the new target is known."""
    dropped = {
        topic_id: dict(indexes) for topic_id, indexes in member.assigned.items() if topic_id not in subscribed
    }
    if not dropped:
        return member
    assigned = {topic_id: indexes for topic_id, indexes in member.assigned.items() if topic_id in subscribed}
    revoking = {topic_id: dict(indexes) for topic_id, indexes in member.revoking.items()}
    for topic_id, indexes in dropped.items():
        revoking.setdefault(topic_id, {}).update(indexes)
    if _still_holds(revoking, reported):
        return member._replace(
            state=UNREVOKED, previous_epoch=member.epoch, assigned=assigned, revoking=revoking
        )
    return member._replace(previous_epoch=member.epoch, assigned=assigned)


def _advance(
    owner_of: Callable[[bytes, int], str | None],
    member: ConsumerGroupMember,
    target_epoch: int,
    target: Mapping[bytes, tuple[int, ...]],
    subscribed: frozenset[bytes],
    reported: Reported,
) -> ConsumerGroupMember:
    assigned: Owned = {}
    revoking: Owned = {}
    gained: Owned = {}
    must_wait = False
    for topic_id in sorted({*target, *member.assigned}):
        wanted = target.get(topic_id, ()) if topic_id in subscribed else ()
        has = member.assigned.get(topic_id, {})
        keeps = {index: epoch for index, epoch in has.items() if index in wanted}
        gives = {index: epoch for index, epoch in has.items() if index not in wanted}
        gets = {}
        for index in wanted:
            if index in keeps:
                continue
            owner = owner_of(topic_id, index)
            if owner is None or owner == member.member_id:
                gets[index] = target_epoch
            else:
                must_wait = True
        for partitions, found in ((assigned, keeps), (revoking, gives), (gained, gets)):
            if found:
                partitions[topic_id] = found
    if revoking and _still_holds(revoking, reported):
        return member._replace(
            state=UNREVOKED, previous_epoch=member.epoch, assigned=assigned, revoking=revoking
        )
    for topic_id, indexes in gained.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **indexes}
    return member._replace(
        state=UNRELEASED if must_wait else STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking={},
    )
