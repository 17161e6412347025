"""Configuration 6 of the leader failure analysis: nobody else has the records."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1005)
    lab.kill(lab.leader)
    await lab.until_offline()
    await lab.send(1, waits=False)
    await lab.sleep(20)
    await lab.start(1)
    await lab.until_leader(1)
    await lab.until_told()


SCENARIO = LabScenario(
    title="Replication factor 1: the only replica dies and comes back",
    source="Leader failure: Configuration 6; Data loss scenario 3, option A",
    claim=("The partition is offline until the broker is back. Its disk is well, so nothing is lost."),
    play=play,
    replication_factor=1,
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1005", leader=1, leader_epoch=2),
)
