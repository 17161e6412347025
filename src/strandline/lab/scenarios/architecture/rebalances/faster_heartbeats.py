"""A mitigation of rebalance storms: members hear sooner of a rebalance."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._join import join as play

SCENARIO = LabScenario(
    title="Mitigation 2: heartbeat.interval.ms=1000",
    source="Architecture: Rebalance storms and mitigation",
    claim="heartbeat.interval.ms=3000: failures are detected faster.",
    finding=(
        "3 s is the default. A failure is detected by session.timeout.ms, however often the others send "
        "heartbeats. Heartbeats tell members that a rebalance has begun: with 1 s between them all have "
        "joined within a second."
    ),
    play=play,
    partitions=6,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "range", "heartbeat.interval.ms": "1000"},
    facts={"partitions given up": "6"},
    bounds={"rebalance": (0.0, 1.2), "longest time without partitions": (0.0, 1.2)},
    expected=Outcome(acknowledged="0-119", seen="0-119", rebalances=3, leader=1, leader_epoch=0),
)
