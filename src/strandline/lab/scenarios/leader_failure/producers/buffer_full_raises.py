"""The full buffer of the leader failure analysis, second branch: max.block.ms passes."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    lab.cut("producer", 1, 2, 3)
    sending = lab.begin(lab.send(400, waits=False, size=100))
    await lab.sleep(100)
    lab.heal()
    await sending
    await lab.until_told()


SCENARIO = LabScenario(
    title="The producer's buffer is full: max.block.ms passes, and send raises",
    source="Leader failure: Producer buffering",
    claim="send() raises a timeout after max.block.ms (60 s) for records that find no room.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "buffer.memory": "32768", "batch.size": "256"},
    expected=Outcome(
        acknowledged="0-273, 275-409", failed="274", errors="REQUEST_TIMED_OUT", leader=1, leader_epoch=0
    ),
)
