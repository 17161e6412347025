"""A client ends a transaction with an epoch that only a coordinator may use."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    for version in (1, 2):
        name = f"version {version}"
        producer = await lab.raw_producer(name, transactional_id=name, version=version)
        await producer.begin_transaction()
        if version == 1:
            await producer.add_partition()
        await producer.write(lab.next_numbers(5))
        end = producer.ending(commits=True)
        end.producer_epoch += 1
        lab.fact(f"{name}: EndTxn with a raised epoch", await producer.deliver_ending(end))
        await lab.sleep(1)
        lab.fact(f"{name}: EndTxn with its own epoch", await producer.end(commits=False))
    await lab.sleep(5)


SCENARIO = LabScenario(
    title="An EndTxn with an epoch that the client has made up is refused",
    source="Field 5: KAFKA-9600",
    claim=(
        "The coordinator raises the epoch when it fences a producer, and ends the transaction with it. A client "
        "that sends an EndTxn with this epoch was believed."
    ),
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it sends requests that no client sends",
    facts={
        "version 1: EndTxn with a raised epoch": "PRODUCER_FENCED",
        "version 1: EndTxn with its own epoch": "written",
        "version 2: EndTxn with a raised epoch": "PRODUCER_FENCED",
        "version 2: EndTxn with its own epoch": "written",
    },
    expected=Outcome(untold="0-9", leader=1, leader_epoch=0),
)
