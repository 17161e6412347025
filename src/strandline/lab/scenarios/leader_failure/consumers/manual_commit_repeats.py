"""With commits after processing, what was processed since the last commit is processed again."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(100)
    await lab.until_seen(100)
    await lab.commit()
    await lab.send(51)
    await lab.until_seen(151)
    await lab.crash("consumer")
    await lab.consume("second")
    await lab.until_seen(51, "second")
    await lab.sleep(5)


SCENARIO = LabScenario(
    title="Commit after processing: the consumer crashes before the commit",
    source="Leader failure: Manual commit; Architecture: Consumer crash in mid-batch",
    claim="No record is skipped. Records 100-150 are processed again.",
    play=play,
    consumer={"enable.auto.commit": "false"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-150", seen="0-150", seen_twice="100-150", leader=1, leader_epoch=0),
)
