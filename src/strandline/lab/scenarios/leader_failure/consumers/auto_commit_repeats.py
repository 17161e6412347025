"""With automatic commits, what was read since the last commit is read again."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(100)
    await lab.until_seen(100)
    await lab.sleep(6)
    await lab.send(100)
    await lab.until_seen(200)
    await lab.crash("consumer")
    await lab.consume("second")
    await lab.until_seen(100, "second")
    await lab.sleep(5)


SCENARIO = LabScenario(
    title="enable.auto.commit=true: the consumer crashes between two commits",
    source="Leader failure: Auto-commit",
    claim="Records 100-199 are processed again.",
    play=play,
    consumer={"enable.auto.commit": "true"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-199", seen="0-199", seen_twice="100-199", leader=1, leader_epoch=0),
)
