"""Transaction version 1: a producer that starts again after a lost EndTxn fences its own late requests."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    producer = await lab.raw_producer(transactional_id="orders", version=1)
    await producer.begin_transaction()
    await producer.add_partition()
    await producer.write(lab.next_numbers(5))
    late = producer.ending(commits=True)
    lab.note("the EndTxn is on its way for long; the producer gives it up and starts again")
    lab.fact("InitProducerId", await producer.init(knows_itself=True))
    lab.fact("epoch", producer.epoch)
    await producer.begin_transaction()
    await producer.add_partition()
    await producer.write(lab.next_numbers(5))
    other = await lab.connect(1, "other connection")
    lab.fact("the late EndTxn", await producer.deliver_ending(late, other))
    lab.fact("the next batch", await producer.write(lab.next_numbers(5)))
    await producer.commit_transaction()
    await lab.until_seen(10)
    await lab.sleep(1)


SCENARIO = LabScenario(
    title="Transaction version 1: a producer that starts again fences its own late EndTxn",
    source="Field 2: librdkafka#5423",
    claim="After an EndTxn that timed out a new InitProducerId must fence whatever is still on its way.",
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sends requests that no client sends",
    facts={
        "InitProducerId": "written",
        "epoch": "1",
        "the late EndTxn": "PRODUCER_FENCED",
        "the next batch": "written",
    },
    expected=Outcome(acknowledged="5-14", untold="0-4", seen="5-14", leader=1, leader_epoch=0),
)
