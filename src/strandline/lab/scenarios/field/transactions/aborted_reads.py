"""Transactions of two producers end while the leader dies: nothing of the aborted ones is read."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.begin_transaction()
    await lab.producer("second", {"transactional.id": "second"})
    await lab.begin_transaction("second")
    for _ in range(3):
        await lab.send(5)
        await lab.send(5, name="second")
    await lab.until_replicated()
    lab.kill(1)
    await lab.until_leader_changes()
    await lab.abort_transaction()
    await lab.send(5, name="second")
    await lab.begin_transaction()
    await lab.send(5)
    await lab.commit_transaction("second")
    await lab.start(1)
    await lab.until_in_sync()
    lab.kill(2)
    await lab.until_leader_changes()
    await lab.abort_transaction()
    await lab.send_in_transaction(5, commits=True)
    await lab.until_seen(25)
    await lab.consume("late reader", {"group.id": "late"})
    await lab.until_seen(25, "late reader")
    await lab.sleep(2)


SCENARIO = LabScenario(
    title="Leaders die amid transactions of two producers: nothing that was aborted is read",
    source="Field 8: redpanda#3036",
    claim="Consumers read records of transactions that were aborted.",
    finding="Two consumers read, one while it happens and one in the end; each sees what was committed, once.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    expected=Outcome(
        acknowledged="5-9, 15-19, 25-34, 40-44",
        seen="5-9, 15-19, 25-34, 40-44",
        seen_twice="5-9, 15-19, 25-34, 40-44",
        leader=1,
        leader_epoch=2,
    ),
)
