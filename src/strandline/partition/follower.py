"""The follower's role: what it fetches next and how far its own readers may see.

1. It asks from its own end and says of which epoch its last record is; the leader answers with records that follow, or
   with the point where the logs part. It goes back to that point, never to its high watermark (KIP-101, KIP-279).
2. Its high watermark is the leader's, as far as its own log reaches.
3. Records of a leader epoch that is over are not taken.
"""

from __future__ import annotations

from collections.abc import Sequence


class Follower:
    __slots__ = ("epoch", "high_watermark", "leader_id", "node_id")

    def __init__(self, *, node_id: int, leader_id: int, epoch: int, high_watermark: int) -> None:
        assert leader_id != node_id
        self.node_id = node_id
        self.leader_id = leader_id
        self.epoch = epoch
        self.high_watermark = high_watermark

    def leader_high_watermark_advanced(self, leader_high_watermark: int, end_offset: int) -> bool:
        """The leader's high watermark came with an answer; whether one's own advanced."""
        known = min(leader_high_watermark, end_offset)
        if known <= self.high_watermark:
            return False
        self.high_watermark = known
        return True


def truncation_point(
    epochs: Sequence[tuple[int, int]], end_offset: int, diverging_epoch: int, diverging_end: int
) -> int:
    """Where to cut one's log when the leader says that `diverging_epoch` ended at `diverging_end` in its own."""
    found: tuple[int, int] | None = None
    for number, (epoch, _) in enumerate(epochs):
        if epoch > diverging_epoch:
            break
        end = epochs[number + 1][1] if number + 1 < len(epochs) else end_offset
        found = (epoch, end)
    if found is None:
        return min(diverging_end, end_offset) if not epochs else min(diverging_end, epochs[0][1])
    own_epoch, own_end = found
    return min(own_end, diverging_end) if own_epoch == diverging_epoch else min(own_end, end_offset)
