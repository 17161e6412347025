"""A producer ends a transaction with the last epoch that there is."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    producer = await lab.raw_producer(transactional_id="orders")
    lab.use_up_epochs(producer, 32766)
    first = producer.producer_id
    await producer.begin_transaction()
    await producer.write(lab.next_numbers(5))
    end = producer.ending(commits=True)
    await producer.commit_transaction()
    lab.fact("another producer id after the commit", producer.producer_id != first)
    lab.fact("epoch after the commit", producer.epoch)
    await lab.until_seen(5)
    identity = (producer.producer_id, producer.epoch)
    lab.fact("the same EndTxn again", await producer.deliver_ending(end))
    lab.fact("the same identity after it", identity == (producer.producer_id, producer.epoch))
    await producer.begin_transaction()
    await producer.write(lab.next_numbers(5))
    await producer.commit_transaction()
    await lab.until_seen(10)


SCENARIO = LabScenario(
    title="The last epoch is ended: the producer goes on with another producer id",
    source="Field 3: KAFKA-18660",
    claim=(
        "With version 2 of transactions each end raises the epoch. After 32,766 the coordinator told a wrong "
        "producer id and epoch."
    ),
    finding="A repeated EndTxn gets the new producer id too, so that a lost response costs nothing.",
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sets the epoch in the coordinator: to reach it takes 32,766 transactions",
    facts={
        "another producer id after the commit": "True",
        "epoch after the commit": "0",
        "the same EndTxn again": "written",
        "the same identity after it": "True",
    },
    expected=Outcome(acknowledged="0-9", seen="0-9", leader=1, leader_epoch=0),
)
