"""The leader of a partition, in the response to a request that was sent to the wrong broker (KIP-951)."""

from __future__ import annotations

from typing import NamedTuple

from strandline.controller.image import ClusterImage


class Hint(NamedTuple):
    leader_id: int
    leader_epoch: int


class LeaderAddress(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


class LeaderHints:
    """The leaders in one response, and their addresses for clients of this listener."""

    def __init__(self, image: ClusterImage, listener: str) -> None:
        self._image = image
        self._listener = listener
        self.addresses: dict[int, LeaderAddress] = {}

    def of(self, topic: str, partition: int) -> Hint:
        known = self._image.topics.get(topic)
        state = None if known is None else known.partitions.get(partition)
        if state is None:
            return Hint(-1, -1)
        leader = self._image.brokers.get(state.leader)
        endpoint = None if leader is None or leader.fenced else leader.endpoint(self._listener)
        if leader is not None and endpoint is not None:
            self.addresses[leader.node_id] = LeaderAddress(
                leader.node_id, endpoint.host, endpoint.port, leader.rack or None
            )
        return Hint(state.leader, state.leader_epoch)
