"""The death of a broker that only has data moves no partition between consumers."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(100)
    await lab.until_seen(100)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.send(100)
    await lab.until_seen(200)
    await lab.sleep(60)


SCENARIO = LabScenario(
    title="The leader of the data dies: the group does not rebalance",
    source="Leader failure: Consumer observation 3",
    claim=("Fetches fail and are repeated; heartbeats go to the coordinator, so there is no rebalance."),
    play=play,
    cluster={"offsets.topic.num.partitions": "1"},
    replication_factor=2,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all"},
    brokers=4,
    expected=Outcome(acknowledged="0-199", seen="0-199", leader=2, leader_epoch=1),
)
