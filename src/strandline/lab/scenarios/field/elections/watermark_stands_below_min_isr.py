"""With too few in-sync replicas the high watermark stands still, also for acks=1."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(100)
    await lab.until_replicated()
    await lab.stop(3)
    await lab.stop(2)
    await lab.until_in_sync(1)
    await lab.producer("careless", {"acks": "1"})
    await lab.send(10, name="careless")
    await lab.sleep(20)
    lab.fact("high watermark below the minimum", lab.view.replicas[0].high_watermark)
    lab.fact("records seen below the minimum", lab.count_seen())
    await lab.start(2)
    await lab.until_in_sync(1, 2)
    await lab.until_seen(110)
    lab.fact("high watermark with the minimum", lab.view.replicas[0].high_watermark)


SCENARIO = LabScenario(
    title="Below min.insync.replicas the high watermark stands still",
    source="Field 16: KIP-966",
    claim="A leader that is alone in the set commits by itself, and consumers see what one disk has.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={
        "high watermark below the minimum": "100",
        "records seen below the minimum": "100",
        "high watermark with the minimum": "110",
    },
    expected=Outcome(acknowledged="0-109", seen="0-109", leader=1, leader_epoch=0),
)
