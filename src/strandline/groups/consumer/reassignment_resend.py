"""Remembers assignments that members of the consumer protocol have been sent and have not reported yet.

A response is lost if its client gives up waiting. The client should then send a full heartbeat, and gets its assignment
with the response (KIP-848). librdkafka repeats its last request instead, and would never learn of partitions that it
got or has to revoke. So an assignment that a member has not reported after some heartbeats is sent again, which does no
harm to a client that is about to follow it.

None of this is in a record: a new coordinator believes its members, as Kafka's always does.
"""

from __future__ import annotations

from typing import Final

from strandline.base.moment import Moment
from strandline.groups.consumer.group import Owned
from strandline.groups.consumer.reconciliation import Reported

_HEARTBEATS: Final = 3


class ReassignmentResend:
    """The times at which unreported assignments are due again."""

    def __init__(self) -> None:
        self._again_at: dict[tuple[str, str], float] = {}

    def confirm(self, group_id: str, member_id: str, assigned: Owned, reported: Reported) -> None:
        """Forgets the assignment of a member that reports it."""
        if (group_id, member_id) in self._again_at and _is_same(assigned, reported):
            self.forget(group_id, member_id)

    def is_due(self, group_id: str, member_id: str, now: Moment) -> bool:
        """Returns True if the member could have reported its assignment by now and has not."""
        again_at = self._again_at.get((group_id, member_id))
        return again_at is not None and now.monotonic >= again_at

    def sent(
        self,
        group_id: str,
        member_id: str,
        assigned: Owned,
        reported: Reported,
        interval_ms: int,
        now: Moment,
    ) -> None:
        """Notes an assignment that goes to the member with this response, unless the member has it already."""
        if not _is_same(assigned, reported):
            self._again_at[group_id, member_id] = now.after_ms(_HEARTBEATS * interval_ms)

    def forget(self, group_id: str, member_id: str) -> None:
        self._again_at.pop((group_id, member_id), None)


def _is_same(assigned: Owned, reported: Reported) -> bool:
    return reported is not None and {
        topic_id: set(indexes) for topic_id, indexes in assigned.items() if indexes
    } == {topic_id: set(indexes) for topic_id, indexes in reported.items() if indexes}
