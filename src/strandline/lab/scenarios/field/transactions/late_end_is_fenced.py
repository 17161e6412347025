"""Transaction version 2: a late EndTxn is refused."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.field.transactions._late import end_arrives_late


async def play(lab: Lab) -> None:
    await end_arrives_late(lab, 2)


SCENARIO = LabScenario(
    title="Transaction version 2: a late EndTxn is refused",
    source="Field 1: Jepsen on Bufstream 0.1.0; KAFKA-17754",
    claim="A delayed EndTxn arrives in the next transaction: a lost write, an aborted read, a torn transaction.",
    finding="With version 2 each end raises the epoch: the late EndTxn has the one before, and is refused.",
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sends requests that no client sends",
    facts={
        "the late EndTxn": "PRODUCER_FENCED",
        "the next batch": "written",
        "the producer aborts": "written",
    },
    expected=Outcome(acknowledged="0-4", untold="5-14", seen="0-4", leader=1, leader_epoch=0),
)
