"""A mitigation of rebalance storms: fewer records from one poll."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.rebalances._storm import work_too_long as play

SCENARIO = LabScenario(
    title="Mitigation 4: max.poll.records=50",
    source="Architecture: Rebalance storms and mitigation",
    claim="The poll loop is faster.",
    play=play,
    partitions=3,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"max.poll.records": "50"},
    facts={"records that were worked on again": "0", "records committed": "300"},
    expected=Outcome(acknowledged="0-299", seen="0-299", leader=1, leader_epoch=0),
)
