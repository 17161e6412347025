"""A transaction's marker is the last batch of a segment, and compaction takes it away."""

from __future__ import annotations

from strandline.lab.base import TOPIC
from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.raw import fetch
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    large = await lab.raw_producer("large", transactional_id="large")
    hesitant = await lab.raw_producer("hesitant", transactional_id="hesitant")
    large.has_keys = hesitant.has_keys = True
    large.record_bytes = 150_000
    for _ in range(4):
        await large.begin_transaction()
        await large.write(lab.next_numbers(5))
        await large.commit_transaction()
        await hesitant.begin_transaction()
        await hesitant.write(lab.next_numbers(5))
        await hesitant.abort_transaction()
        await lab.sleep(60)
    lab.note("each segment has two transactions; its last batch is the marker of the one that was aborted")
    lab.fact("markers that are left, of 8", lab.simulated.count_markers(1, TOPIC, 0))
    reader = await lab.connect(1)
    silent = [offset for offset in range(48) if not (await fetch(reader, TOPIC, offset, -1)).records]
    lab.fact("offsets from which nothing can be read", silent)
    await lab.consume()
    await lab.until_seen(20)
    await lab.sleep(1)


SCENARIO = LabScenario(
    title="The marker at the end of a segment is compacted away: consumers read on",
    source="Field 14: redpanda#13639",
    claim="A consumer waits for ever at an offset below the last stable offset that compaction has taken away.",
    play=play,
    brokers=1,
    replication_factor=1,
    topic={
        "cleanup.policy": "compact",
        "segment.ms": "30000",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    },
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sends requests that no client sends",
    facts={"markers that are left, of 8": "7", "offsets from which nothing can be read": "[]"},
    expected=Outcome(
        acknowledged="0-4, 10-14, 20-24, 30-34", seen="0-4, 10-14, 20-24, 30-34", leader=1, leader_epoch=0
    ),
)
