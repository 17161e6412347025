"""Transaction version 1: a late EndTxn commits half of the next transaction."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.field.transactions._late import end_arrives_late


async def play(lab: Lab) -> None:
    await end_arrives_late(lab, 1)


SCENARIO = LabScenario(
    title="Transaction version 1: a late EndTxn tears the next transaction",
    source="Field 1: Jepsen on Bufstream 0.1.0; KAFKA-17754",
    claim="A delayed EndTxn arrives in the next transaction: a lost write, an aborted read, a torn transaction.",
    finding=(
        "With version 1 nothing in an EndTxn says of which transaction it is. Records 5-9 are committed though "
        "their producer wanted to abort. Version 2 is the remedy (late-end-is-fenced)."
    ),
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sends requests that no client sends",
    facts={
        "the late EndTxn": "written",
        "the next batch": "TRANSACTION_ABORTABLE",
        "the producer aborts": "INVALID_TXN_STATE",
    },
    expected=Outcome(
        acknowledged="0-4",
        failed="10-14",
        untold="5-9",
        errors="TRANSACTION_ABORTABLE",
        seen="0-9",
        leader=1,
        leader_epoch=0,
    ),
)
