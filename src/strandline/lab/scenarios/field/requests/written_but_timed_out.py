"""A batch is written, and the response says that it timed out: the producer sends it again."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.field.requests._applied import time_out_after_writing


async def play(lab: Lab) -> None:
    await time_out_after_writing(lab)


SCENARIO = LabScenario(
    title="The batch is written, and the response says REQUEST_TIMED_OUT",
    source="Field 20: kfake, afterApply",
    claim="Work is applied and the response says that it was not: the client must be able to send it again.",
    finding="The repeated batch has the same sequence numbers: it is written once.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-119", leader=1, leader_epoch=0),
)
