"""One leader per partition and epoch, as far as the nodes themselves believe; and no epoch goes back on a node."""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.sim.history import Violation
from strandline.sim.world import World


class Leaders:
    """Looks at the nodes again and again; remembers everything that it saw."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[TopicPartition, int], int] = {}

    def look(self, world: World) -> None:
        for node in world.nodes.values():
            if not node.is_running or not hasattr(node.broker, "replicas"):
                continue
            for replica in node.broker.replicas.all_open():
                if not replica.is_leader:
                    continue
                key = (replica.partition, replica.epoch)
                known = self._leaders.setdefault(key, node.node_id)
                if known != node.node_id:
                    raise Violation(
                        "two-leaders",
                        f"{known} and {node.node_id} lead {replica.partition} in epoch {replica.epoch}",
                    )

    @property
    def count(self) -> int:
        return len(self._leaders)
