"""An observer is away, and then it is the only one left."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.set_topic({"strandline.observers": "4"})
    await lab.send(100)
    await lab.sleep(2)
    lab.cut(4, 1, 2, 3)
    lab.measure("acknowledgement while the observer is away", await lab.time_to_send(10))
    lab.heal()
    await lab.sleep(2)
    for broker in (1, 2, 3):
        lab.kill(broker)
    await lab.until_offline()
    await lab.sleep(10)
    lab.fact("leader while only the observer is left", lab.leader)
    for broker in (1, 2, 3):
        await lab.start(broker)
    await lab.until(lambda: lab.leader > 0, "a replica to lead")
    await lab.send(10)


SCENARIO = LabScenario(
    title="An observer holds nobody up, and is never elected",
    source="Replication: Observer replicas",
    claim="Observers do not vote and are never eligible.",
    play=play,
    brokers=4,
    topic={"min.insync.replicas": "2", "unclean.leader.election.enable": "true"},
    producer={"acks": "all"},
    bounds={"acknowledgement while the observer is away": (0.0, 1.0)},
    facts={"leader while only the observer is left": "-1"},
    expected=Outcome(acknowledged="0-119", leader=1, leader_epoch=3),
)
