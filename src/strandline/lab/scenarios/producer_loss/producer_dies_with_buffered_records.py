"""The producer's process dies, and with it the records that it had not sent."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(5)
    await lab.send(5, waits=False)
    await lab.sleep(1)
    await lab.crash("producer")
    await lab.sleep(60)


SCENARIO = LabScenario(
    title="linger.ms: the producer dies with records in its buffer",
    source="Producer loss: Linger",
    claim="Records that are in the buffer are lost with the producer.",
    finding=("They were never acknowledged: the application that does not wait for results loses them."),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "linger.ms": "30000"},
    expected=Outcome(acknowledged="0-4", untold="5-9", leader=1, leader_epoch=0),
)
