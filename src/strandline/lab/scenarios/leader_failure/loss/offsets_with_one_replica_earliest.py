"""The offsets topic has one replica, its broker is gone for good, and the consumer starts at the beginning."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(500)
    await lab.consume()
    await lab.until_seen(500)
    await lab.commit()
    await lab.crash("consumer")
    await lab.send(500)
    lab.kill(lab.coordinator)
    lab.replace_disk(lab.coordinator)
    await lab.start(lab.coordinator)
    await lab.until_in_sync()
    await lab.consume("second")
    await lab.until_seen(1000, "second")


SCENARIO = LabScenario(
    title="Committed offsets are lost, auto.offset.reset=earliest",
    source="Leader failure: Data loss scenario 4, mitigation",
    claim="No record is skipped. Records 0-499 are read again.",
    play=play,
    cluster={"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"},
    varies_for_real=("leader", "leader_epoch"),  # the coordinator may be the leader, too
    consumer={"enable.auto.commit": "false"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-999", seen="0-999", seen_twice="0-499", leader=1, leader_epoch=0),
)
