"""The death of the group's coordinator costs the group a new coordinator, and no offsets."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(100)
    await lab.until_seen(100)
    await lab.commit()
    lab.kill(lab.coordinator)
    await lab.sleep(10)
    await lab.send(100)
    await lab.until_seen(200)
    await lab.commit()
    await lab.sleep(60)


SCENARIO = LabScenario(
    title="The group's coordinator dies",
    source="Leader failure: Consumer observation 3",
    claim="Another broker becomes coordinator. Offsets are there, and the consumer goes on.",
    play=play,
    cluster={"offsets.topic.num.partitions": "1"},
    consumer={"enable.auto.commit": "false"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-199", seen="0-199", leader=1, leader_epoch=0),
)
