"""Row 2 of "What messages are lost": above the high watermark, and the next leader has it."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(1)
    await lab.until_written(2)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    lab.heal()
    await lab.until_written(3)


SCENARIO = LabScenario(
    title="A record above the high watermark is on part of the ISR: on the next leader",
    source="Leader failure: What messages are lost, row 2",
    claim="It is not lost, if a replica that has it becomes leader.",
    finding=(
        "It is by chance that broker 2 has it: the controller elects the first replica of the list that is in "
        "sync and alive, and does not look at who has most."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    expected=Outcome(acknowledged="0-1000", leader=2, leader_epoch=1),
)
