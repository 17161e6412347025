"""A consumer dies in the middle of a batch, after it has worked on some of its records."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.consume("first")
    await lab.until_seen(100, "first")
    await lab.commit("first")
    await lab.leave("first")
    await lab.consume("second", work_seconds=1)
    await lab.send(10)
    await lab.until_seen(4, "second")
    await lab.crash("second")
    await lab.consume("third")
    await lab.until_seen(10, "third")
    await lab.sleep(5)


SCENARIO = LabScenario(
    title="The consumer dies in the middle of a batch",
    source="Architecture: Consumer failure mid-batch",
    claim="The new consumer begins at the last committed offset, 100, and works on records 100-103 again.",
    finding="It gets them when the session of the dead one is over (45 s).",
    play=play,
    consumer={"enable.auto.commit": "false"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-109", seen="0-109", seen_twice="100-103", leader=1, leader_epoch=0),
)
