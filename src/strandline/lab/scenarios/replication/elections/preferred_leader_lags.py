"""The preferred leader is out of the ISR: it is not elected."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    lab.kill(1)
    await lab.until_leader(2)
    lab.cut(1, 2)
    await lab.send(10)
    await lab.start(1)
    await lab.sleep(5)
    await lab.elect_preferred()
    await lab.sleep(5)
    lab.fact("leader after the election of the preferred one", lab.leader)
    lab.heal()
    await lab.until_in_sync()
    await lab.elect_preferred()
    await lab.until_leader(1)
    await lab.send(10)


SCENARIO = LabScenario(
    title="The preferred leader is not in sync",
    source="Replication: Preferred replica election",
    claim="The election of the preferred leader works only if it is in the ISR.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={"leader after the election of the preferred one": "2"},
    expected=Outcome(acknowledged="0-29", leader=1, leader_epoch=2),
)
