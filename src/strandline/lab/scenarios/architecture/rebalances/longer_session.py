"""A mitigation of rebalance storms: a pause that is shorter than the session."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    for name in ("one", "two"):
        await lab.consume(name)
    await lab.until_assigned("one", "two")
    lab.cut("one", 1)
    await lab.sleep(40)
    lab.heal()
    await lab.send(60)
    await lab.until_all_seen(60)
    await lab.sleep(10)


SCENARIO = LabScenario(
    title="Mitigation 1: a pause of 40 s within session.timeout.ms=45000",
    source="Architecture: Rebalance storms and mitigation",
    claim="session.timeout.ms=30000 gives more time before a member is declared dead.",
    finding=(
        "The default was 10 s then. It is 45 s today, so that the advice makes it shorter: with 30 s this "
        "pause costs two rebalances."
    ),
    play=play,
    partitions=2,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-59", seen="0-59", leader=1, leader_epoch=0),
)
