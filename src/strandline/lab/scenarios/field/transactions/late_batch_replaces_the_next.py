"""Transaction version 1: a late batch takes the place of a batch of the next transaction."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.field.transactions._late import batch_arrives_late


async def play(lab: Lab) -> None:
    await batch_arrives_late(lab, 1)


SCENARIO = LabScenario(
    title="Transaction version 1: a late batch takes the place of the next one",
    source="Field 1: Jepsen on Bufstream 0.1.0; KAFKA-17754",
    claim="A delayed Produce arrives in the next transaction, on another connection.",
    finding=(
        "With version 1 the epoch is the same, and so is the sequence number: the broker takes the batch that "
        "the producer gave up, and then the next one for its repetition. Records 5-9 are there though they were "
        "aborted, and 10-14 are lost though they were committed. Version 2 is the remedy (late-batch-is-fenced)."
    ),
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sends requests that no client sends",
    facts={"the producer aborts": "written", "the late batch": "written", "the next batch": "written"},
    expected=Outcome(acknowledged="0-4, 10-14", lost="10-14", seen="0-9", leader=1, leader_epoch=0),
)
