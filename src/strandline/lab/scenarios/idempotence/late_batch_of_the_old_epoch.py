"""A batch of a producer that has been replaced arrives late."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    first = await lab.raw_producer("first", transactional_id="orders")
    late = first.batch(lab.next_numbers(5))
    second = await lab.raw_producer("second", transactional_id="orders")
    lab.fact("epochs of the first and the second", f"{first.epoch}, {second.epoch}")
    await second.begin_transaction()
    await second.write(lab.next_numbers(5))
    lab.fact("the late batch of the first", await first.deliver(late))
    await second.commit_transaction()
    lab.fact("the late batch after the commit", await first.deliver(late))


SCENARIO = LabScenario(
    title="A late batch of the old epoch is refused",
    source="Idempotence: What if the producer itself restarts",
    claim=(
        "The new session has a higher epoch. The broker discards an old batch that arrives after the restart."
    ),
    finding="It is refused with an error, and the old producer is told that another has taken its place.",
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    only_simulated="it sends requests that no client sends",
    facts={
        "epochs of the first and the second": "0, 1",
        "the late batch of the first": "INVALID_PRODUCER_EPOCH",
        "the late batch after the commit": "INVALID_PRODUCER_EPOCH",
    },
    expected=Outcome(acknowledged="5-9", leader=1, leader_epoch=0),
)
