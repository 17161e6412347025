"""Configuration 2 of the leader failure analysis: the leader acknowledges what only it has."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(1)
    lab.kill(lab.leader)
    await lab.until_leader_changes()


SCENARIO = LabScenario(
    title="acks=1: the leader acknowledges a record and dies before a follower has it",
    source=(
        "Leader failure: Configuration 2; Data loss scenario 1; What messages are lost, row 4; "
        "Producer loss: Scenario 1; four-row table, row 1"
    ),
    claim="Record 1000 is lost. The producer has its acknowledgement.",
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1", "retries": "3"},
    expected=Outcome(acknowledged="0-1000", lost="1000", leader=2, leader_epoch=1),
)
