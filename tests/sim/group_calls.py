"""The notes of a group's judge about each request on its way, and about each member."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from strandline.wire.codec import decode
from strandline.wire.records import offsets_topic as made
from strandline.wire.records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.sim.group_records import Held
from tests.unit.groups.machine import topic_id

if TYPE_CHECKING:
    from tests.sim.group_judge import GroupJudge


@dataclass(slots=True)
class Known:
    """A member, as far as anyone outside of the coordinator can know it."""

    member_id: str
    instance_id: str | None
    is_classic: bool
    session_s: float
    rebalance_s: float
    heard_at: float  # when its session began last
    standing_at: float  # when it had last done all it was told
    generation: int = -1
    synced: int = -1  # the generation that it has an assignment of
    offers: tuple[str, ...] = ()
    holds: set[Held] = field(default_factory=set)
    revoking_since: float | None = None
    is_gone: bool = False
    gone_at: float = -1.0
    is_leaving: bool = False  # it has said that it goes, or another comes in its place
    joined: Call | None = None  # its last JoinGroup


def partitions_in(assignment: bytes) -> set[Held]:
    """Returns the partitions that a SyncGroup gives, in the bytes of the classic protocol."""
    if not assignment:
        return set()
    message = decode(ConsumerProtocolAssignment, int.from_bytes(assignment[:2], "big"), assignment, 2)
    return {
        (topic_id(topic.topic), index) for topic in message.assigned_partitions for index in topic.partitions
    }


def owned_in(subscription: bytes) -> tuple[int, set[Held]]:
    """Returns the generation and the partitions that a member of the classic protocol names when it joins."""
    message = decode(ConsumerProtocolSubscription, int.from_bytes(subscription[:2], "big"), subscription, 2)
    return message.generation_id, {
        (topic_id(topic.topic), index) for topic in message.owned_partitions for index in topic.partitions
    }


class Call:
    """A request on its way; it is also the token by which the runtime responds."""

    def __init__(self, request: Any, version: int, judge: GroupJudge, response: asyncio.Future[Any]) -> None:
        self.request = request
        self.version = version
        self._judge = judge
        self._response = response
        self.producer_id = -1  # of the transaction that a commit belongs to
        self.is_prompt = True  # its sender does what it is told
        self.arrived_at = -1.0
        self.is_given = False
        self.is_dropped = False
        # What the log said when it arrived.
        self.told_generation = -1
        self.deletions = 0  # of classic groups
        self.assigned_generation = -1
        self.written_generation = -1
        self.is_of_consumer_group = False
        self.current: made.ConsumerGroupCurrentMemberAssignmentValue | None = None
        self.since: dict[Held, int] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.twin: str | None = None  # who has its instance id
        self.is_twin_away = False
        self.is_undisturbed = False  # nobody came or went since the generation began
        self.is_refused = False
        self.before: Call | None = None  # the JoinGroup under its instance id before this one
        self.inhabitant: str | None = None  # a member that is alive, if what is asked must not find any
        self.written_end = 0  # where the log ended when what was asked for had been written

    @property
    def member_id(self) -> str:
        return getattr(self.request, "member_id", "") or ""

    @property
    def instance_id(self) -> str | None:
        request = self.request
        found: str | None = getattr(request, "group_instance_id", None) or getattr(
            request, "instance_id", None
        )
        return found

    @property
    def offers(self) -> tuple[str, ...]:
        return tuple(protocol.name for protocol in self.request.protocols)

    def drop(self) -> None:
        self.is_dropped = True

    def respond(self, response: Any) -> None:
        if self.is_given:
            return
        self.is_given = True
        self._judge.judge(lambda: self._judge.given(self, response))
        if not self._response.done():
            self._response.set_result(response)
