"""A consumer's committed offsets survive the death of the data's leader and of the consumer."""

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
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.send(100)
    await lab.consume("second")
    await lab.until_seen(100, "second")


SCENARIO = LabScenario(
    title="Consumer and leader die; the committed offsets are there",
    source="Leader failure: Consumer observation 2",
    claim="The next consumer goes on at offset 500.",
    play=play,
    consumer={"enable.auto.commit": "false"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-599", seen="0-599", leader=2, leader_epoch=1),
)
