"""The limits of every fetch on this node: the size of a response, and whether followers serve consumers."""

from __future__ import annotations

from strandline.broker.node_context import NodeContext

_RACK_AWARE = "RackAwareReplicaSelector"
_LEADER = "LeaderSelector"


class FetchPolicy:
    def __init__(self, node: NodeContext) -> None:
        self._node = node
        selector = node.config.optional_text("replica.selector.class") or ""
        self.selects_by_rack = selector.endswith(_RACK_AWARE)
        self.bytes_max = node.int_config("fetch.max.bytes")
        if selector and not selector.endswith((_RACK_AWARE, _LEADER)):
            node.events.warn("no such replica selector: consumers read from leaders", selector=selector)

    def configs_changed(self) -> None:
        self.bytes_max = self._node.int_config("fetch.max.bytes")
