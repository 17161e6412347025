"""A rebalance storm with cooperative members."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._storm import work_too_long as play

SCENARIO = LabScenario(
    title="Rebalance storm, cooperative",
    source="Architecture: Rebalance storms and mitigation",
    claim=(
        "Consumers time out, the others get their partitions, are overloaded, and time out too. Cooperative "
        "rebalancing mitigates it."
    ),
    finding=(
        "It does not help here: it spares members that keep up, and none does. Partitions of a member that "
        "left are lost, not revoked."
    ),
    play=play,
    partitions=3,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "cooperative-sticky"},
    facts={"records that were worked on again": "585", "records committed": "0"},
    expected=Outcome(
        acknowledged="0-299", seen="0-299", seen_twice="0-299", rebalances=6, leader=1, leader_epoch=0
    ),
)
