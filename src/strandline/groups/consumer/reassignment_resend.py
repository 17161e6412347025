"""Assignments that members of the consumer protocol were told and have not reported yet.

An answer can be lost: its client gave up waiting. A client should then say all it knows, and gets its assignment with
the answer (KIP-848). librdkafka repeats what it had said instead, and would never hear of partitions that it was given
or has to let go of. So an assignment that a member has not reported after some heartbeats is told again, which does no
harm to a client that is about to follow it.

None of this is written down: a coordinator that takes over believes its members, as Kafka's does at all times.
"""

from __future__ import annotations

from typing import Final

from strandline.base.moment import Moment
from strandline.groups.consumer.group import Owned
from strandline.groups.consumer.reconciliation import Reported

_HEARTBEATS: Final = 3


class Unconfirmed:
    def __init__(self) -> None:
        self._again_at: dict[tuple[str, str], float] = {}

    def must_tell_again(
        self, group_id: str, member_id: str, assigned: Owned, reported: Reported, now: Moment
    ) -> bool:
        """Whether the member could have reported by now what it was told."""
        again_at = self._again_at.get((group_id, member_id))
        if again_at is None:
            return False
        if _is_same(assigned, reported):
            self.forget(group_id, member_id)
            return False
        return now.monotonic >= again_at

    def told(
        self,
        group_id: str,
        member_id: str,
        assigned: Owned,
        reported: Reported,
        interval_ms: int,
        now: Moment,
    ) -> None:
        if not _is_same(assigned, reported):
            self._again_at[group_id, member_id] = now.after_ms(_HEARTBEATS * interval_ms)

    def forget(self, group_id: str, member_id: str) -> None:
        self._again_at.pop((group_id, member_id), None)


def _is_same(assigned: Owned, reported: Reported) -> bool:
    return reported is not None and {
        topic_id: set(indexes) for topic_id, indexes in assigned.items() if indexes
    } == {topic_id: set(indexes) for topic_id, indexes in reported.items() if indexes}
