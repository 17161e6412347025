"""The follower's role: what it fetches next and how far its own readers may see.

1. It fetches from the end of its own log and names the epoch of its last record. The leader responds with the records
   that follow, or with the point where the two logs diverge. The follower truncates its log there, never at its high
   watermark (KIP-101, KIP-279).
2. Its high watermark is the leader's, as far as its own log reaches.
3. It does not append records of a leader epoch that is over.
"""

from __future__ import annotations

from collections.abc import Sequence


class PartitionFollower:
    """The state of a replica that follows a leader."""

    __slots__ = ("epoch", "high_watermark", "leader_id", "node_id")

    def __init__(self, *, node_id: int, leader_id: int, epoch: int, high_watermark: int) -> None:
        assert leader_id != node_id
        self.node_id = node_id
        self.leader_id = leader_id
        self.epoch = epoch
        self.high_watermark = high_watermark

    def leader_high_watermark_advanced(self, leader_high_watermark: int, end_offset: int) -> bool:
        """Takes the leader's high watermark from a response; returns True if the follower's own has advanced."""
        known = min(leader_high_watermark, end_offset)
        if known <= self.high_watermark:
            return False
        self.high_watermark = known
        return True


def truncation_point(
    epochs: Sequence[tuple[int, int]], end_offset: int, diverging_epoch: int, diverging_end: int
) -> int:
    """Returns the offset to which a follower truncates its log if the leader's `diverging_epoch` ends at
    `diverging_end`."""
    own: tuple[int, int] | None = None
    for number, (epoch, _) in enumerate(epochs):
        if epoch > diverging_epoch:
            break
        end = epochs[number + 1][1] if number + 1 < len(epochs) else end_offset
        own = (epoch, end)
    if own is None:
        return min(diverging_end, end_offset) if not epochs else min(diverging_end, epochs[0][1])
    own_epoch, own_end = own
    return min(own_end, diverging_end) if own_epoch == diverging_epoch else min(own_end, end_offset)
