"""read_committed shows records of a transaction when it is committed, and never those of an aborted one."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.begin_transaction()
    await lab.send(10)
    await lab.sleep(10)
    lab.note("the last stable offset stands at the begin of the transaction")
    await lab.commit_transaction()
    await lab.until_seen(10)
    await lab.begin_transaction()
    await lab.send(10)
    await lab.abort_transaction()
    await lab.begin_transaction()
    await lab.send(10)
    await lab.commit_transaction()
    await lab.until_seen(20)
    await lab.sleep(1)


SCENARIO = LabScenario(
    title="isolation.level=read_committed: the consumer waits at the last stable offset",
    source="Leader failure: Read committed",
    claim="Nothing of an open transaction is read, and nothing of an aborted one.",
    play=play,
    consumer={"isolation.level": "read_committed"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "transactional.id": "orders"},
    expected=Outcome(acknowledged="0-9, 20-29", seen="0-9, 20-29", leader=1, leader_epoch=0),
)
