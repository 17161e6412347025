"""A mitigation of rebalance storms: more time between two polls."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._storm import work_too_long as play

SCENARIO = LabScenario(
    title="Mitigation 3: max.poll.interval.ms=600000",
    source="Architecture: Rebalance storms and mitigation",
    claim="More processing time is allowed.",
    play=play,
    partitions=3,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"max.poll.interval.ms": "600000"},
    facts={"records that were worked on again": "0", "records committed": "300"},
    expected=Outcome(acknowledged="0-299", seen="0-299", leader=1, leader_epoch=0),
)
