"""The leader's role: what it may accept and how far readers may see.

1. The high watermark is the smallest end offset over the in-sync replicas and never goes back.
2. It does not advance while fewer replicas are in sync than the effective minimum (KIP-966).
3. With acks=all a write is refused while the in-sync set is below the effective minimum, which is the smaller of
   `min.insync.replicas` and the number of replicas.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.base.errors import ErrorCode, KafkaError

ACKS_ALL = -1


def high_watermark(in_sync_end_offsets: Iterable[int]) -> int:
    return min(in_sync_end_offsets)


class Leader:
    __slots__ = ("_end_offsets", "epoch", "high_watermark", "in_sync", "node_id", "replicas")

    def __init__(
        self,
        *,
        node_id: int,
        epoch: int,
        replicas: tuple[int, ...],
        in_sync: tuple[int, ...],
        end_offset: int,
        high_watermark: int,
    ) -> None:
        assert node_id in in_sync, "a leader is in sync with itself"
        assert high_watermark <= end_offset
        self.node_id = node_id
        self.epoch = epoch
        self.replicas = replicas
        self.in_sync = in_sync
        self.high_watermark = high_watermark
        # Followers are unknown until they fetch; until then they hold the high watermark where it is.
        self._end_offsets = dict.fromkeys(replicas, -1)
        self._end_offsets[node_id] = end_offset

    def effective_min_in_sync(self, min_in_sync: int) -> int:
        return min(min_in_sync, len(self.replicas))

    def check_acks_all(self, min_in_sync: int) -> None:
        needed = self.effective_min_in_sync(min_in_sync)
        if len(self.in_sync) < needed:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.in_sync)} replicas are in sync, and min.insync.replicas asks for {needed}.",
            )

    def appended(self, end_offset: int, min_in_sync: int) -> bool:
        """The leader's own log ends here now; whether the high watermark advanced."""
        assert end_offset >= self._end_offsets[self.node_id]
        self._end_offsets[self.node_id] = end_offset
        return self._advance(min_in_sync)

    def _advance(self, min_in_sync: int) -> bool:
        if len(self.in_sync) < self.effective_min_in_sync(min_in_sync):
            return False
        new = high_watermark(self._end_offsets[replica] for replica in self.in_sync)
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def check_invariants(self) -> None:
        assert self.high_watermark <= self._end_offsets[self.node_id]
        assert set(self.in_sync) <= set(self.replicas)
