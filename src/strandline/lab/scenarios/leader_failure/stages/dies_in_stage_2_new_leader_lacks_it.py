"""A record's life, stage 2: a part of the in-sync replicas has it, and not the next leader."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication(2)
    await lab.send(1, waits=False)
    await lab.until_written(3)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    lab.heal()
    await lab.until_told()
    await lab.until_in_sync(2, 3)
    await lab.until_written(3)


SCENARIO = LabScenario(
    title=("Stage 2 of a record's life: the next leader lacks the record, another in-sync replica has it"),
    source="Leader failure: Message lifecycle, stage 2; What messages are lost, row 2",
    claim="The record is lost, because a replica without it becomes leader.",
    finding=(
        "Broker 3 cuts off its copy. The producer, which has no acknowledgement, sends the record again: "
        "it is in the log once."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1000", leader=2, leader_epoch=1),
)
