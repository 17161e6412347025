"""A fourth member joins a group of KIP-848."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._join import join as play

SCENARIO = LabScenario(
    title="A member joins: KIP-848",
    source="Architecture: Cooperative sticky assignor; Rebalance storms and mitigation",
    claim="The analysis does not know this protocol.",
    finding=(
        "The broker assigns, and each member gives up and takes partitions with its heartbeat: nobody waits "
        "for all."
    ),
    play=play,
    partitions=6,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"group.protocol": "consumer"},
    facts={"partitions given up": "1"},
    bounds={"rebalance": (0.0, 11.0), "longest time without partitions": (0.0, 0.0)},
    expected=Outcome(acknowledged="0-119", seen="0-119", leader=1, leader_epoch=0),
)
