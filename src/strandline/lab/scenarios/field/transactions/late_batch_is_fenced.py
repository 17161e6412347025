"""Transaction version 2: a late batch is refused."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.field.transactions._late import batch_arrives_late


async def play(lab: Lab) -> None:
    await batch_arrives_late(lab, 2)


SCENARIO = LabScenario(
    title="Transaction version 2: a late batch is refused",
    source="Field 1: Jepsen on Bufstream 0.1.0; KAFKA-17754",
    claim="A delayed Produce arrives in the next transaction, on another connection.",
    finding="With version 2 the abort has raised the epoch: the late batch has the one before, and is refused.",
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sends requests that no client sends",
    facts={
        "the producer aborts": "written",
        "the late batch": "INVALID_PRODUCER_EPOCH",
        "the next batch": "written",
    },
    expected=Outcome(acknowledged="0-4, 10-14", seen="0-4, 10-14", leader=1, leader_epoch=0),
)
