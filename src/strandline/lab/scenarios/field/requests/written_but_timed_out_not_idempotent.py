"""A batch is written, and the response says that it timed out: without idempotence it is there twice."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.field.requests._applied import time_out_after_writing


async def play(lab: Lab) -> None:
    await time_out_after_writing(lab)


SCENARIO = LabScenario(
    title="The batch is written, and the response says REQUEST_TIMED_OUT; the producer is not idempotent",
    source="Field 20: kfake, afterApply",
    claim="Work is applied and the response says that it was not: the client must be able to send it again.",
    finding="Without enable.idempotence nothing tells the repeated batch from a new one: it is written twice.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "enable.idempotence": "false"},
    expected=Outcome(acknowledged="0-119", duplicated="100-109", leader=1, leader_epoch=0),
)
