"""The leader is cut off from brokers and controllers, and one replica would be enough."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.partitions._isolated import isolate_the_leader as play

SCENARIO = LabScenario(
    title="Network partition: the leader is cut off from everybody, acks=all and min.insync.replicas=1",
    source="Architecture: Network partition handling",
    claim="The ISR shrinks to the leader, which goes on taking writes: they are lost if another one leads.",
    finding=(
        "Only the controller can take a replica out of the ISR, and it cannot be reached. The high watermark "
        "stands, so that acks=all is never acknowledged, whatever the minimum is. The producer on the wrong "
        "side sends its records again when the links work."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-109", leader=2, leader_epoch=1),
)
