"""A record's life, stage 4: the high watermark has passed it."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(1000)
    await lab.until_seen(1000)
    lab.stop_replication(2)
    await lab.send(1)
    lab.kill(lab.leader)
    lab.heal()
    await lab.until_leader_changes()
    await lab.until_seen(1001)


SCENARIO = LabScenario(
    title="Stage 4 of a record's life: the record is committed, and the leader dies",
    source="Leader failure: Message lifecycle, stage 4",
    claim="The record is committed, visible and safe.",
    finding=(
        "It is safe though broker 2 never had it: the record was committed when broker 2 had left the ISR, "
        "and then broker 2 cannot lead. Broker 3 does, though it is not the first of the list."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1000", seen="0-1000", leader=3, leader_epoch=1),
)
