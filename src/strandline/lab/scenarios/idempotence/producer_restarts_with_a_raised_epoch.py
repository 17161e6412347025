"""A second producer with the same transactional id raises the epoch; the first is fenced."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.begin_transaction()
    await lab.send(10)
    await lab.producer("second")
    await lab.begin_transaction("second")
    await lab.send(10, name="second")
    await lab.send(5, name="producer")
    await lab.commit_transaction("second")


SCENARIO = LabScenario(
    title="The producer restarts: its epoch rises, and the old one is fenced",
    source="Idempotence: Producer restart; late batch of the old epoch",
    claim="The late batch of the old epoch is refused, its transaction aborted.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "transactional.id": "orders"},
    expected=Outcome(
        acknowledged="10-19",
        failed="20-24",
        untold="0-9",
        errors="INVALID_PRODUCER_EPOCH",
        leader=1,
        leader_epoch=0,
    ),
)
