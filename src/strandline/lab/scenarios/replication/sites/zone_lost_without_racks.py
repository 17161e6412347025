"""Six brokers in three zones: nobody told the cluster, two replicas are in one zone, and it is lost."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.note("brokers 1 and 2 are in the zone that is lost, broker 3 is in another")
    lab.kill(1)
    lab.kill(2)
    await lab.until_leader(3)
    await lab.send(100, waits=False)
    await lab.sleep(30)
    await lab.start(1)
    await lab.until_told()


SCENARIO = LabScenario(
    title="A zone of three is lost, without broker.rack",
    source="Replication: Rack awareness",
    claim="Two of three replicas are lost at once: writes stop until one is back.",
    play=play,
    brokers=6,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-199", leader=3, leader_epoch=2),
)
