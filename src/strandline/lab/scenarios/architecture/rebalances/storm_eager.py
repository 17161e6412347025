"""A rebalance storm: members leave, come back and leave again."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._storm import work_too_long as play

SCENARIO = LabScenario(
    title="Rebalance storm, eager",
    source="Architecture: Rebalance storms and mitigation",
    claim="Consumers time out, the others get their partitions, are overloaded, and time out too.",
    finding=(
        "Heartbeats do not miss: a thread of their own sends them. It is max.poll.interval.ms (300 s) that "
        "takes a member for dead that works for 400 s on a batch. All leave, nothing that they do is "
        "committed, and they get the same records again: hundreds of records are worked on again, and none is "
        "ever done with."
    ),
    play=play,
    partitions=3,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "range"},
    facts={"records that were worked on again": "585", "records committed": "0"},
    expected=Outcome(
        acknowledged="0-299", seen="0-299", seen_twice="0-299", rebalances=6, leader=1, leader_epoch=0
    ),
)
