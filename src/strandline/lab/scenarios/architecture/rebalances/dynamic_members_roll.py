"""Members without names are restarted one after the other."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._rolling import restart_all


async def play(lab: Lab) -> None:
    await restart_all(lab, are_static=False)


SCENARIO = LabScenario(
    title="Members are restarted one after the other, and have no instance id",
    source="Architecture: Static group membership",
    claim="Each restart brings a new member id, and a rebalance.",
    finding="Each brings two: one when the member leaves, and one when it comes back.",
    play=play,
    partitions=3,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "cooperative-sticky"},
    expected=Outcome(rebalances=21, leader=1, leader_epoch=0),
)
