"""A member joins while another one works on a batch."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    for name in ("one", "two"):
        await lab.consume(name)
    await lab.consume("slow", work_seconds=20)
    await lab.until_assigned("one", "two", "slow")
    await lab.send(4)
    await lab.sleep(1)
    began = lab.now()
    await lab.consume("newcomer")
    await lab.until_assigned("one", "two", "slow", "newcomer")
    lab.measure("rebalance", lab.now() - began)
    lab.measure("longest time without partitions", max(map(lab.stalled_seconds, ("one", "two"))))
    await lab.until_all_seen(4)


SCENARIO = LabScenario(
    title="A rebalance waits for the member that works longest",
    source="Architecture: Why rebalancing causes stop-the-world",
    claim="All members stop until all have joined; it takes longer the more they are.",
    finding=(
        "What counts is the longest batch, not the number of members: the others stand still for the 20 s "
        "that one of them works."
    ),
    play=play,
    partitions=4,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    consumer={"partition.assignment.strategy": "range"},
    bounds={"rebalance": (15.0, 21.0), "longest time without partitions": (15.0, 21.0)},
    expected=Outcome(acknowledged="0-3", seen="0-3", rebalances=3, leader=1, leader_epoch=0),
)
