"""A fourth member joins an eager group."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._join import join as play

SCENARIO = LabScenario(
    title="A member joins: eager",
    source="Architecture: Cooperative sticky assignor; Rebalance storms and mitigation",
    claim="All members revoke all partitions, and all stop.",
    finding=(
        "Each stops when it hears of the newcomer by its heartbeat, until the last one has heard of it: at "
        "most heartbeat.interval.ms (3 s) later, and at once here, where the heartbeats of all fall together."
    ),
    play=play,
    partitions=6,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "range"},
    facts={"partitions given up": "6"},
    bounds={"rebalance": (0.0, 3.5), "longest time without partitions": (0.0, 3.5)},
    expected=Outcome(acknowledged="0-119", seen="0-119", rebalances=3, leader=1, leader_epoch=0),
)
