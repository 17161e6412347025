"""The full buffer of the leader failure analysis, first branch: the new leader is there in time."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    lab.cut("producer", 1, 2, 3)
    sending = lab.begin(lab.send(400, waits=False, size=100))
    await lab.sleep(20)
    lab.note("the buffer is full, and send waits")
    lab.heal()
    await sending
    await lab.until_told()


SCENARIO = LabScenario(
    title="The producer's buffer is full: it drains, and send goes on",
    source="Leader failure: Producer buffering",
    claim=("send() waits up to max.block.ms (60 s). The leader is there before that, and nothing fails."),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "buffer.memory": "32768", "batch.size": "256"},
    expected=Outcome(acknowledged="0-409", leader=1, leader_epoch=0),
)
