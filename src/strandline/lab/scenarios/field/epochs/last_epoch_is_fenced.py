"""A producer takes over from one that has an open transaction with the last epoch."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    first = await lab.raw_producer("first", transactional_id="orders")
    lab.use_up_epochs(first, 32766)
    await first.begin_transaction()
    await first.write(lab.next_numbers(5))
    second = await lab.raw_producer("second", transactional_id="orders")
    lab.fact("another producer id", second.producer_id != first.producer_id)
    lab.fact("epoch of the second", second.epoch)
    lab.fact("a batch of the first", await first.write(lab.next_numbers(5)))
    lab.fact("the end of the first", await first.end(commits=True))
    await second.begin_transaction()
    await second.write(lab.next_numbers(5))
    await second.commit_transaction()
    await lab.until_seen(5)
    await lab.sleep(1)


SCENARIO = LabScenario(
    title="A producer with the last epoch is fenced: its transaction is aborted, and the epoch does not overflow",
    source="Field 4: KAFKA-19367",
    claim=(
        "InitProducerId with an open transaction at epoch 32766 raised the epoch twice, which made it negative: "
        "no producer could use the transactional id any more."
    ),
    finding="The abort gives the id another producer id with epoch 0, and the new producer begins with 1.",
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sets the epoch in the coordinator: to reach it takes 32,766 transactions",
    facts={
        "another producer id": "True",
        "epoch of the second": "1",
        "a batch of the first": "INVALID_PRODUCER_EPOCH",
        "the end of the first": "INVALID_PRODUCER_ID_MAPPING",
    },
    expected=Outcome(
        acknowledged="10-14",
        failed="5-9",
        untold="0-4",
        errors="INVALID_PRODUCER_EPOCH",
        seen="10-14",
        leader=1,
        leader_epoch=0,
    ),
)
