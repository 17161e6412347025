"""Configuration 4 of the leader failure analysis: what is acknowledged is on two brokers."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(1000)
    await lab.send(1)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.send(5)
    await lab.until_seen(1006)


SCENARIO = LabScenario(
    title="acks=all with min.insync.replicas=2: the leader dies after the acknowledgement",
    source="Leader failure: Configuration 4; What messages are lost, row 5",
    claim="Record 1000 is safe: the new leader has it.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1005", seen="0-1005", leader=2, leader_epoch=1),
)
