"""Row 1 of "What messages are lost": below the high watermark, whatever the producer waits for."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_committed()
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.consume()
    await lab.until_seen(1000)


SCENARIO = LabScenario(
    title="Records below the high watermark, of a producer with acks=1",
    source="Leader failure: What messages are lost, row 1",
    claim="They are not lost: each in-sync replica has them.",
    finding=(
        "The new leader may know of a lower high watermark than the old one. It shows the records as soon as "
        "the other in-sync replicas have told it how far they are."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    expected=Outcome(acknowledged="0-999", seen="0-999", leader=2, leader_epoch=1),
)
