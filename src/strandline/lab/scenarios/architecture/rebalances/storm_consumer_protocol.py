"""A rebalance storm with the protocol of KIP-848."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._storm import work_too_long as play

SCENARIO = LabScenario(
    title="Rebalance storm, KIP-848",
    source="Architecture: Rebalance storms and mitigation",
    claim="Consumers time out, the others get their partitions, are overloaded, and time out too.",
    finding=(
        "The broker assigns, and there are fewer rebalances. The cause is the same: who does not poll leaves, "
        "and its work is lost."
    ),
    play=play,
    partitions=3,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"group.protocol": "consumer"},
    facts={"records that were worked on again": "447", "records committed": "0"},
    expected=Outcome(
        acknowledged="0-299", seen="0-299", seen_twice="0-299", rebalances=2, leader=1, leader_epoch=0
    ),
)
