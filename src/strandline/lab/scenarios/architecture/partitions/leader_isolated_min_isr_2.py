"""The leader is cut off from all others, and may acknowledge nothing."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.partitions._isolated import isolate_the_leader as play

SCENARIO = LabScenario(
    title="Network partition: the leader is cut off from everybody, acks=all and min.insync.replicas=2",
    source="Architecture: Network partition; Leader failure: Data loss scenario 5, mitigation",
    claim="The old leader cannot acknowledge, so nothing acknowledged is lost.",
    finding=(
        "The producer on the wrong side sends its records again when the links work, and they are in the "
        "log once."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-109", leader=2, leader_epoch=1),
)
