"""A record's life, stage 2: a part of the in-sync replicas has it, the next leader among them."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(1, waits=False)
    await lab.until_written(2)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    lab.heal()
    await lab.until_told()
    await lab.until_written(3)


SCENARIO = LabScenario(
    title=("Stage 2 of a record's life: the next leader has the record, another in-sync replica has not"),
    source="Leader failure: Message lifecycle, stage 2; What messages are lost, row 2",
    claim=(
        "The record is above the high watermark, and survives because a replica that has it becomes leader."
    ),
    finding=("The producer sends the record again, and the new leader knows it by its sequence number."),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1000", leader=2, leader_epoch=1),
)
