"""A static member restarts after its session: others have its partitions, and give them back."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._static import be_away


async def play(lab: Lab) -> None:
    await be_away(lab, 60)


SCENARIO = LabScenario(
    title="A static member restarts after its session",
    source="Architecture: Static group membership",
    claim="Only a restart within session.timeout.ms goes without a rebalance.",
    finding=(
        "There are two rebalances: the other member takes the partition when the session ends, and gives it "
        "back. With the range assignor it also gives up and takes its own partition each time."
    ),
    play=play,
    partitions=2,
    consumer={"session.timeout.ms": "45000"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={"partitions that the other member had to take or give": "6"},
    expected=Outcome(acknowledged="0-199", seen="0-199", leader=1, leader_epoch=0, rebalances=2),
)
