"""A leader whose host is silent, beside one that crashes."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    lab.pause(lab.leader)
    await lab.send(10)
    lab.resume(1)
    await lab.until_in_sync()


SCENARIO = LabScenario(
    title="The leader's host falls silent, and nobody closes its connections",
    source="Leader failure: Leader failure timeline; Downtime during leader failure",
    claim=("The controller notices it after its timeout, the producer after request.timeout.ms (30 s)."),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-19", leader=2, leader_epoch=1),
)
