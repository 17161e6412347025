"""A static member restarts within its session: its partitions wait for it."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._static import be_away


async def play(lab: Lab) -> None:
    await be_away(lab, 20)


SCENARIO = LabScenario(
    title="A static member restarts inside of its session",
    source="Architecture: Static group membership",
    claim="No rebalance: the member gets its partitions back.",
    finding="Nobody reads its partitions meanwhile: up to session.timeout.ms of delay is the price.",
    play=play,
    partitions=2,
    consumer={"session.timeout.ms": "45000"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={"partitions that the other member had to take or give": "0"},
    expected=Outcome(acknowledged="0-199", seen="0-199", leader=1, leader_epoch=0),
)
