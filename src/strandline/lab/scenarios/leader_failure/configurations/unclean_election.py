"""Configuration 7 of the leader failure analysis: a replica that lags behind is elected."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(850)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(150)
    await lab.until_in_sync(1, 2)
    lab.kill(1)
    lab.kill(2)
    lab.heal()
    await lab.until_leader(3)
    await lab.send(5, waits=False)
    await lab.sleep(5)
    await lab.start(2)
    await lab.until_told()


SCENARIO = LabScenario(
    title="Unclean election: all in-sync replicas are dead, and one that lags behind leads",
    source=(
        "Leader failure: Configuration 7; Data loss scenario 2, option B; "
        "Producer loss: four-row table, row 3"
    ),
    claim="Records 850-999 are lost, their offsets are used again.",
    finding=(
        "With min.insync.replicas=2 the new leader alone takes no records of acks=all: the producer "
        "waits until a second replica is back."
    ),
    play=play,
    topic={"min.insync.replicas": "2", "unclean.leader.election.enable": "true"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1004", lost="850-999", leader=3, leader_epoch=1),
)
