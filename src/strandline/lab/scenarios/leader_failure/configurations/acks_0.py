"""Configuration 1 of the leader failure analysis: the producer waits for nothing."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.sleep(1)
    await lab.until_replicated()
    await lab.send(5)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.send(5)
    await lab.sleep(5)


SCENARIO = LabScenario(
    title="acks=0: the leader dies before it has written the records",
    source="Leader failure: Configuration 1",
    claim="The records are lost, and the producer takes them for sent.",
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "0", "enable.idempotence": "false"},
    expected=Outcome(acknowledged="0-109", lost="100-104", leader=2, leader_epoch=1),
)
