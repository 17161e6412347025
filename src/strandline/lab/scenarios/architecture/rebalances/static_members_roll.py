"""A mitigation of rebalance storms: members keep their names."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._rolling import restart_all


async def play(lab: Lab) -> None:
    await restart_all(lab, are_static=True)


SCENARIO = LabScenario(
    title="Mitigation 5: static members are restarted one after the other",
    source="Architecture: Static group membership; Rebalance storms and mitigation",
    claim="A restart within session.timeout.ms causes no rebalance.",
    play=play,
    partitions=3,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "cooperative-sticky"},
    expected=Outcome(leader=1, leader_epoch=0),
)
