"""Transaction version 1: our producer had to send its EndTxn twice, and the first arrives in the next transaction."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.set_feature("transaction.version", 1)
    await lab.consume()
    await lab.begin_transaction()
    await lab.send(5)
    held = lab.fault(1, "broker 1 holds the next EndTxn back", kind="barrier", api="EndTxn")
    await lab.commit_transaction()
    await lab.begin_transaction()
    await lab.send(5)
    lab.release(held, "the EndTxn that was held back arrives")
    await lab.sleep(1)
    await lab.send(5)
    await lab.abort_transaction()
    await lab.begin_transaction()
    await lab.send(5)
    await lab.commit_transaction()
    await lab.until_seen(10)


SCENARIO = LabScenario(
    title="Transaction version 1: a producer that starts again after an EndTxn without a response",
    source="Field 2: librdkafka#5423",
    claim="After an EndTxn that timed out a new InitProducerId must fence the one that is still on its way.",
    finding=(
        "Strandline's producer takes a new epoch after a request of a transaction had no response; Java's "
        "goes on with the one that it has. The EndTxn that was held back is refused."
    ),
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all", "transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    only_simulated="it shows what Strandline's producer does, which others do not",
    expected=Outcome(acknowledged="0-4, 15-19", seen="0-4, 15-19", leader=1, leader_epoch=0),
)
