"""Leadership moves while the producer rests; it tries again."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.producer_loss._moved_leader import send_to_the_former_leader as play

SCENARIO = LabScenario(
    title="Retries, and leadership has moved: NOT_LEADER_OR_FOLLOWER",
    source="Producer loss: Scenario 2, what the producer should have done",
    claim="The error passes: the producer asks who leads and sends the record again.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-19", leader=1, leader_epoch=2),
)
