"""A fourth member joins a cooperative group."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._join import join as play

SCENARIO = LabScenario(
    title="Mitigation 6: a member joins, cooperative",
    source="Architecture: Cooperative sticky assignor; Rebalance storms and mitigation",
    claim="Only the partitions that move are paused; the rest is read on.",
    finding="There are two rebalances: one takes partitions away, the next gives them to the newcomer.",
    play=play,
    partitions=6,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "cooperative-sticky"},
    facts={"partitions given up": "1"},
    bounds={"rebalance": (0.0, 7.0), "longest time without partitions": (0.0, 0.0)},
    expected=Outcome(acknowledged="0-119", seen="0-119", rebalances=7, leader=1, leader_epoch=0),
)
