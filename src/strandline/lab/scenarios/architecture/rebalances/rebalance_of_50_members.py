"""A member joins a group of 50."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._many_members import let_another_join as play

SCENARIO = LabScenario(
    title="A member joins a group of 50",
    source="Architecture: Why rebalancing causes stop-the-world",
    claim="A rebalance of 50 members takes 30 s and more.",
    finding=(
        "It takes until the last member has polled after its next heartbeat, at most heartbeat.interval.ms (3 "
        "s) here, however many they are. It takes long where a member works long on a batch (rebalance-waits- "
        "for-the-slowest)."
    ),
    play=play,
    partitions=51,
    brokers=1,
    replication_factor=1,
    consumer={"partition.assignment.strategy": "range"},
    bounds={"rebalance": (0.0, 3.5)},
    expected=Outcome(rebalances=50, leader=1, leader_epoch=0),
)
