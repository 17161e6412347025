"""Steps that several scenarios share: a request of one transaction arrives in the next."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.raw import RawProducer


async def begin(lab: Lab, version: int) -> RawProducer:
    """Starts a consumer of committed records. Returns a producer with this version of transactions."""
    await lab.consume()
    return await lab.raw_producer(transactional_id="orders", version=version)


async def write(lab: Lab, producer: RawProducer, count: int) -> str:
    """Writes the next numbers; with version 1 the producer adds the partition first."""
    if producer.version == 1:
        await producer.add_partition()
    return await producer.write(lab.next_numbers(count))


async def end_arrives_late(lab: Lab, version: int) -> None:
    """The commit of the first transaction is sent twice; one of the two arrives in the second transaction."""
    producer = await begin(lab, version)
    await producer.begin_transaction()
    await write(lab, producer, 5)
    late = producer.ending(commits=True)
    lab.note("the first EndTxn is on its way for long, the producer sends another one")
    await producer.commit_transaction()
    await lab.until_seen(5)
    await producer.begin_transaction()
    await write(lab, producer, 5)
    other = await lab.connect(1, "other connection")
    lab.fact("the late EndTxn", await producer.deliver_ending(late, other))
    await lab.sleep(1)
    lab.fact("the next batch", await producer.write(lab.next_numbers(5)))
    lab.fact("the producer aborts", await producer.end(commits=False))
    await lab.sleep(1)


async def batch_arrives_late(lab: Lab, version: int) -> None:
    """The producer gives a batch up and aborts; the batch arrives in the next transaction."""
    producer = await begin(lab, version)
    await producer.begin_transaction()
    await write(lab, producer, 5)
    await producer.commit_transaction()
    await lab.until_seen(5)
    if version == 1:
        await producer.add_partition()
    late = producer.batch(lab.next_numbers(5))
    lab.note("records 5-9 are on their way for long, the producer gives them up and aborts")
    lab.fact("the producer aborts", await producer.end(commits=False))
    await producer.begin_transaction()
    if version == 1:
        await producer.add_partition()
    other = await lab.connect(1, "other connection")
    lab.fact("the late batch", await producer.deliver(late, other))
    lab.fact("the next batch", await producer.write(lab.next_numbers(5)))
    await producer.commit_transaction()
    await lab.sleep(1)
