"""The partition moves to other brokers while its leaders die."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.cut(4, 1, 2, 3, 5)
    await lab.reassign(3, 4, 5)
    await lab.sleep(5)
    lab.kill(1)
    await lab.until_leader(3)
    await lab.send(100)
    lab.fact("replicas while broker 4 is away", [each.broker for each in lab.view.replicas])
    lab.kill(3)
    lab.heal()
    await lab.until_leader_changes()
    lab.fact("leader while broker 4 catches up", lab.leader)
    await lab.start(3)
    await lab.send(100)
    await lab.until(lambda: len(lab.view.replicas) == 3, "the move to end")
    await lab.until_in_sync()
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.send(100)
    lab.fact("replicas in the end", [each.broker for each in lab.view.replicas])


SCENARIO = LabScenario(
    title="A partition moves to other brokers while its leaders die",
    source="Field 9: Jepsen on Redpanda 21.11.2",
    claim="Kills while replicas are added and removed lost acknowledged records, or showed old ones.",
    finding="A replica is removed only after those that are added have everything.",
    play=play,
    brokers=5,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all"},
    facts={
        "replicas while broker 4 is away": "[1, 2, 3, 4, 5]",
        "leader while broker 4 catches up": "5",
        "replicas in the end": "[3, 4, 5]",
    },
    expected=Outcome(acknowledged="0-399", leader=3, leader_epoch=4),
)
