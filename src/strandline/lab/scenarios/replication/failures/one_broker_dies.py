"""Scenario 1 of the analysis of replication: a single broker fails, and comes back."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    lab.kill(lab.leader)
    await lab.send(100)
    await lab.start(1)
    await lab.until_in_sync()
    await lab.until_replicated()
    lab.compare_copies()


SCENARIO = LabScenario(
    title="Scenario 1: one broker of three fails",
    source="Replication: Failure scenarios, 1",
    claim=(
        "Another one leads, writes go on. The broker comes back as a follower, catches up, and is in sync "
        "again."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    only_simulated="it compares the bytes of the logs on the disks",
    facts={"copies on 1, 2, 3": "equal"},
    expected=Outcome(acknowledged="0-199", leader=2, leader_epoch=1),
)
