"""A static member restarts within its session: its partitions wait for it."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.consume("first", {"group.instance.id": "one"})
    await lab.until_seen(100, "first")
    await lab.commit("first")
    await lab.crash("first")
    await lab.sleep(20)
    await lab.send(100)
    await lab.consume("second", {"group.instance.id": "one"})
    await lab.until_seen(100, "second")


SCENARIO = LabScenario(
    title="A static member restarts inside of its session",
    source="Architecture: Static membership",
    claim="No rebalance: it gets its partitions back.",
    play=play,
    consumer={"enable.auto.commit": "false", "session.timeout.ms": "45000"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-199", seen="0-199", leader=1, leader_epoch=0),
)
