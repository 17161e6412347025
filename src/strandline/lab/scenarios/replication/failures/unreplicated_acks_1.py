"""Scenario 3 of the analysis of replication: the leader dies with records 95-99, acks=1."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.replication.failures._unreplicated import die_with_five as play

SCENARIO = LabScenario(
    title="Scenario 3: the leader dies with log end 100 and high watermark 95, acks=1",
    source="Replication: Failure scenarios, 3",
    claim="Records 95-99 were acknowledged and are lost.",
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    expected=Outcome(acknowledged="0-99", lost="95-99", leader=2, leader_epoch=1),
)
