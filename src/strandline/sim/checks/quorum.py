"""The safety of the metadata quorum (Raft, figure 3): one leader in an epoch, and what is committed stays the same."""

from __future__ import annotations

from zlib import crc32

from strandline.sim.history import Violation
from strandline.sim.world import DATA, World
from strandline.storage import names
from strandline.wire.record_batch import headers_in

_DIRECTORY = f"{DATA}/__cluster_metadata-0"


class QuorumSafety:
    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}
        self._high_watermarks: dict[int, tuple[object, int]] = {}

    def look(self, world: World) -> None:
        for node in world.nodes.values():
            if not node.is_running or not hasattr(node.broker, "quorum"):
                continue
            quorum = node.broker.quorum
            if quorum.is_leader:
                known = self._leaders.setdefault(quorum.core.epoch, node.node_id)
                if known != node.node_id:
                    raise Violation(
                        "two-quorum-leaders", f"{known} and {node.node_id} lead in epoch {quorum.core.epoch}"
                    )
            life, before = self._high_watermarks.get(node.node_id, (None, -1))
            now = quorum.core.high_watermark
            if life is node.life and now < before:
                raise Violation("metadata-went-back", f"node {node.node_id}: {before} to {now}")
            self._high_watermarks[node.node_id] = (node.life, now)

    def check(self, world: World) -> None:
        """Checks at the end that the committed batches of any two nodes are the same where both have them."""
        batches: dict[int, tuple[int, int]] = {}  # base offset: which node had it first, and its checksum
        for node in world.nodes.values():
            committed = node.broker.quorum.core.high_watermark
            for name in sorted(node.disk.names(_DIRECTORY)):
                if not name.endswith(names.LOG):
                    continue
                log = memoryview(bytes(node.disk.read(f"{_DIRECTORY}/{name}")))
                for position, header in headers_in(log):
                    if header.next_offset > committed:
                        break
                    found = crc32(log[position : position + header.size])
                    first, known = batches.setdefault(header.base_offset, (node.node_id, found))
                    if known != found:
                        raise Violation(
                            "metadata-differs",
                            f"nodes {first} and {node.node_id} at offset {header.base_offset}",
                        )
