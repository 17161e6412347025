"""Leadership moves while the producer rests; it does not try again."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.producer_loss._moved_leader import send_to_the_former_leader as play

SCENARIO = LabScenario(
    title="No retries, and leadership has moved: NOT_LEADER_OR_FOLLOWER",
    source="Producer loss: Scenario 2; four-row table, row 2",
    claim=(
        "The brokers are well; the producer does not recognise an error that passes, and the record is lost."
    ),
    finding=(
        "One refused request is enough, in a healthy cluster: the broker names the new leader in its "
        "response, and the producer may not use it. The application is told."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "retries": "0", "enable.idempotence": "false"},
    expected=Outcome(
        acknowledged="0-9", failed="10-19", errors="NOT_LEADER_OR_FOLLOWER", leader=1, leader_epoch=2
    ),
)
