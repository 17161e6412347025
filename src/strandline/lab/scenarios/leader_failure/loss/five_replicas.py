"""The mitigation of data loss scenario 2: five replicas, of which two die at once."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    lab.kill(1)
    lab.kill(2)
    await lab.until_leader(3)
    await lab.send(10)


SCENARIO = LabScenario(
    title="Five replicas, min.insync.replicas=3: leader and follower die at once",
    source="Leader failure: Data loss scenario 2, mitigation",
    claim="A higher replication factor (5 instead of 3) survives the death of two brokers.",
    finding=(
        "Nothing is lost, and writes go on with the three that are left. With three replicas and a minimum of "
        "two they would stop (two-brokers-die)."
    ),
    play=play,
    brokers=5,
    replication_factor=5,
    topic={"min.insync.replicas": "3"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1009", leader=3, leader_epoch=2),
)
