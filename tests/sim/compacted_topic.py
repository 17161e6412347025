"""A compacted topic, a writer of it, and what its log has on disk."""

from __future__ import annotations

from strandline.sim.clock import EPOCH_MS
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import produce_request
from strandline.sim.world import SimulatedNode
from strandline.storage import names
from strandline.wire.api.k00_produce import ProduceResponse
from strandline.wire.record_batch import Record, build_batch

SETTINGS = {"log.cleaner.backoff.ms": "150", "log.cleaner.threads": "2"}
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "200",
    "delete.retention.ms": "300",
    "flush.messages": "1",
}
KEYS = 8


class Writer:
    """Writes numbered values under a few keys; remembers what was acknowledged and what was only tried."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.acknowledged: dict[bytes, int] = {}
        self.tried: dict[bytes, list[int]] = {}
        self.number = 0

    async def write(self, client: WireClient, chance: float) -> None:
        key = b"k%d" % int(chance * KEYS)
        self.number += 1
        number = self.number
        self.tried.setdefault(key, []).append(number)
        batch = build_batch([Record(0, EPOCH_MS, key, b"%d" % number)])
        request = produce_request(self.topic, 0, batch)
        response = await client.request(request, ProduceResponse, version=12)
        produced = response.responses[0].partition_responses[0]
        if produced.error_code == 0:
            self.acknowledged[key] = number

    def check(self, records: list[Record]) -> None:
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        newest = {record.key: int(record.value or b"0") for record in records if record.key is not None}
        for key, number in self.acknowledged.items():
            later = [n for n in self.tried[key] if n >= number]
            assert newest.get(key) in later, f"{key!r} has {newest.get(key)}, not {number} or one tried later"


def segments_of(node: SimulatedNode, topic: str) -> list[int]:
    directory = node.volume.root.children["data"].children[f"{topic}-0"]  # type: ignore[union-attr]
    return sorted(
        base
        for name in directory.children  # type: ignore[union-attr]
        if name.endswith(names.LOG) and (base := names.base_offset_of(name)) is not None
    )
