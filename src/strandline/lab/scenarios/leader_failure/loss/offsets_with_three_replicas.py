"""The mitigation of data loss scenario 4: the offsets topic has three replicas."""

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
    await lab.consume("second", {"auto.offset.reset": "latest"})
    await lab.until_seen(500, "second")
    await lab.sleep(10)


SCENARIO = LabScenario(
    title="The broker with the committed offsets dies for good, and they have three replicas",
    source="Leader failure: Data loss scenario 4, mitigation",
    claim=(
        "With offsets.topic.replication.factor=3 the next consumer goes on at 500, whatever auto.offset.reset "
        "is."
    ),
    play=play,
    cluster={"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "3"},
    consumer={"enable.auto.commit": "false"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-999", seen="0-999", leader=1, leader_epoch=0),
)
