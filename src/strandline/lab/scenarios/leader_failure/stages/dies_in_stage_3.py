"""A record's life, stage 3: all in-sync replicas have it, and the high watermark has not advanced."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.silence(lab.leader, "producer")
    await lab.send(1, waits=False)
    await lab.until_written(2, 3)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.until_told()


SCENARIO = LabScenario(
    title=(
        "Stage 3 of a record's life: all replicas have the record, and the producer has no acknowledgement"
    ),
    source=(
        "Leader failure: Message lifecycle, stage 3; Idempotence: Step table, step 5, the batch is there"
    ),
    claim="The text calls it safe in the picture and lost below it.",
    finding=(
        "It is safe: every possible leader has it. The producer sends it again, and it is not written twice."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1000", leader=2, leader_epoch=1),
)
