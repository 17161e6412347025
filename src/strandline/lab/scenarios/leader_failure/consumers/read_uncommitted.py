"""isolation.level=read_uncommitted: the consumer sees what is not decided, and what is aborted."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume("all")
    await lab.consume("committed", {"group.id": "committed", "isolation.level": "read_committed"})
    await lab.send_in_transaction(10, commits=True)
    await lab.until_seen(10, "all")
    await lab.until_seen(10, "committed")
    await lab.begin_transaction()
    await lab.send(10)
    await lab.until_seen(20, "all")
    await lab.sleep(1)
    lab.fact("records of the open transaction that read_committed has seen", lab.count_seen("committed") - 10)
    await lab.abort_transaction()
    await lab.send_in_transaction(10, commits=True)
    await lab.until_seen(30, "all")
    await lab.until_seen(20, "committed")


SCENARIO = LabScenario(
    title="isolation.level=read_uncommitted beside read_committed",
    source="Leader failure: Read committed",
    claim="The one sees all records at once. The other stops where the open transaction begins.",
    finding="What the one has seen may be aborted later: records 10-19 are in no committed transaction.",
    play=play,
    facts={"records of the open transaction that read_committed has seen": "0"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "transactional.id": "orders"},
    expected=Outcome(
        acknowledged="0-9, 20-29",
        seen="0-29",
        seen_twice="0-9, 20-29",
        seen_and_lost="10-19",
        leader=1,
        leader_epoch=0,
    ),
)
