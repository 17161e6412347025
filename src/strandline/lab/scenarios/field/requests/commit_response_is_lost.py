"""The transaction is committed, and the connection ends before its producer is told."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.begin_transaction()
    await lab.send(10)
    told = "broker 1 commits the transaction, and closes the connection instead of a response"
    fault = lab.fault(1, told, kind="disconnect", api="EndTxn", applied=True)
    await lab.commit_transaction()
    assert fault.has_struck()
    await lab.until_seen(10)
    await lab.begin_transaction()
    await lab.send(10)
    await lab.abort_transaction()
    await lab.begin_transaction()
    await lab.send(10)
    await lab.commit_transaction()
    await lab.until_seen(20)


SCENARIO = LabScenario(
    title="The connection ends on the response of EndTxn: the transaction is committed once",
    source="Field 21: apache/kafka#22860",
    claim=(
        "The connection is dropped on the response of EndTxn, and the producer does not know whether its "
        "transaction is committed."
    ),
    finding=(
        "It asks again with the epoch that it had, which tells the repeated EndTxn from that of the next "
        "transaction, and is told the new epoch."
    ),
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all", "transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    expected=Outcome(acknowledged="0-9, 20-29", seen="0-9, 20-29", leader=1, leader_epoch=0),
)
