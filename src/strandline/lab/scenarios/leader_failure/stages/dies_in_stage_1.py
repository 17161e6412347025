"""A record's life, stage 1: only the leader has written it when the leader dies."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(1, waits=False)
    await lab.sleep(1)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    lab.heal()
    await lab.until_told()


SCENARIO = LabScenario(
    title="Stage 1 of a record's life: the leader dies when only it has the record",
    source=(
        "Leader failure: Message lifecycle, stage 1; Data loss scenario 1, mitigation; "
        "Idempotence: Step table, step 5, the batch is not there"
    ),
    claim="The record is lost.",
    finding=(
        "The copy on the leader is lost, and the record is not: it was not acknowledged, so the producer "
        "sends it again to the new leader."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1000", leader=2, leader_epoch=1),
)
