"""Who leads a partition, told beside the error of whoever asked the wrong broker: no metadata is needed (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from strandline.broker.broker import Broker


class Hint(NamedTuple):
    leader_id: int
    leader_epoch: int


class Address(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


class LeaderHints:
    """The hints of one answer, and the addresses of the leaders among them as clients of this listener see them."""

    def __init__(self, broker: Broker, listener: str) -> None:
        self._broker = broker
        self._listener = listener
        self.addresses: dict[int, Address] = {}

    def of(self, topic: str, partition: int) -> Hint:
        known = self._broker.image.topics.get(topic)
        state = None if known is None else known.partitions.get(partition)
        if state is None:
            return Hint(-1, -1)
        leader = self._broker.image.brokers.get(state.leader)
        endpoint = None if leader is None or leader.fenced else leader.endpoint(self._listener)
        if leader is not None and endpoint is not None:
            self.addresses[leader.node_id] = Address(
                leader.node_id, endpoint.host, endpoint.port, leader.rack or None
            )
        return Hint(state.leader, state.leader_epoch)
