"""Scenario 2 of the analysis of replication: two brokers fail."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.kill(1)
    lab.kill(2)
    await lab.until_leader(3)
    await lab.consume(settings={"enable.auto.commit": "false"})
    await lab.until_seen(100)
    await lab.send(10, waits=False)
    await lab.sleep(20)
    lab.fact("acknowledged with one replica in sync", lab.count_acknowledged() - 100)
    await lab.start(2)
    await lab.until_told()
    await lab.until_seen(110)


SCENARIO = LabScenario(
    title="Scenario 2: two brokers of three fail",
    source="Replication: Failure scenarios, 2",
    claim="Reads work, writes fail with NotEnoughReplicas until another broker is in sync again.",
    finding=(
        "The producer tries again meanwhile (delivery.timeout.ms, 120 s): its application notices a delay."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={"acknowledged with one replica in sync": "0"},
    expected=Outcome(acknowledged="0-109", seen="0-109", leader=3, leader_epoch=1),
)
