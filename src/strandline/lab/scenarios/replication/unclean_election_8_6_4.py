"""Three replicas with 8, 6 and 4 records; the shortest is elected."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(4)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(2)
    await lab.until_in_sync(1, 2)
    lab.stop_replication(2)
    await lab.send(2)
    await lab.until_in_sync(1)
    lab.kill(1)
    lab.kill(2)
    lab.heal()
    await lab.until_leader(3)
    await lab.send(2)
    await lab.start(1)
    await lab.start(2)
    await lab.until_in_sync()
    await lab.until_replicated()


SCENARIO = LabScenario(
    title="Unclean election with log ends 8, 6 and 4",
    source="Replication: Unclean leader election",
    claim="The new leader has four records; the others cut their logs to four.",
    play=play,
    topic={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-9", lost="4-7", leader=3, leader_epoch=1),
)
