"""RF 2 with a minimum of two: nothing is lost, and nothing is written while one is away."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.kill(2)
    await lab.until_in_sync(1)
    await lab.send(10, waits=False)
    await lab.sleep(30)
    lab.fact("acknowledged below the minimum", lab.count_acknowledged() - 100)
    await lab.start(2)
    await lab.until_told()


SCENARIO = LabScenario(
    title="Two replicas, min.insync.replicas=2: one dies",
    source="Replication: RF 2, variant 2",
    claim="Writes stop while one of the two is away.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    replication_factor=2,
    brokers=2,
    facts={"acknowledged below the minimum": "0"},
    expected=Outcome(acknowledged="0-109", leader=1, leader_epoch=0),
)
