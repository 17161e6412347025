"""RF 2 with a minimum of one: available, and the leader may be the only one that has a record."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.kill(2)
    await lab.until_in_sync(1)
    await lab.send(10)
    lab.kill(1)
    await lab.until_offline()
    await lab.start(2)
    await lab.sleep(30)
    lab.note("broker 2 was not in sync: the partition stays offline")
    await lab.start(1)
    await lab.until_leader(1)


SCENARIO = LabScenario(
    title="Two replicas, min.insync.replicas=1: one dies after the other",
    source="Replication: RF 2, variant 1",
    claim="Writes go on with one replica. If that one dies too, the partition is offline.",
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all"},
    replication_factor=2,
    brokers=2,
    expected=Outcome(acknowledged="0-109", leader=1, leader_epoch=2),
)
