"""The active controller dies: another one takes over, and data flows on."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.kill(lab.controller)
    await lab.send(100)
    await lab.sleep(10)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.send(100)


SCENARIO = LabScenario(
    title="The active controller dies, and then a leader",
    source="Architecture: Controller failure",
    claim="Reads and writes go on without a controller. Elections wait for the next one.",
    play=play,
    controllers=3,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-299", leader=2, leader_epoch=1),
)
