"""Data loss scenario 3 of the leader failure analysis: the only disk is gone."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    lab.kill(lab.leader)
    await lab.until_offline()
    lab.replace_disk(1)
    await lab.start(1)
    await lab.until_leader(1)
    await lab.send(5)


SCENARIO = LabScenario(
    title="Replication factor 1: the only replica comes back without its disk",
    source="Leader failure: Data loss scenario 3, options B and C",
    claim="All records are lost.",
    play=play,
    replication_factor=1,
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1004", lost="0-999", leader=1, leader_epoch=2),
)
