"""The record is still in the producer's buffer when the leader dies."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10, waits=False)
    await lab.sleep(1)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.until_told()


SCENARIO = LabScenario(
    title="Records in the producer's buffer while the leader dies",
    source="Leader failure: What messages are lost, row 6",
    claim="They are not lost: the producer sends them to the new leader.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "linger.ms": "10000", "delivery.timeout.ms": "120000"},
    expected=Outcome(acknowledged="0-9", leader=2, leader_epoch=1),
)
