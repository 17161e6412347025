"""Configuration 5 of the leader failure analysis with a producer that is not idempotent."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.leader_failure.configurations.lost_acknowledgement import play

SCENARIO = LabScenario(
    title="The acknowledgement is lost, and the producer is not idempotent",
    source=("Leader failure: Configuration 5; Architecture: The duplicate by a lost acknowledgement"),
    claim="The producer sends record 1000 again, and it is in the log twice.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "enable.idempotence": "false"},
    expected=Outcome(acknowledged="0-1000", duplicated="1000", leader=2, leader_epoch=1),
)
