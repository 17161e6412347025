"""Nothing fails: two producers write, members of a group come and go, and another group begins at the end."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume("one")
    await lab.consume("two")
    await lab.until_assigned("one", "two")
    for _ in range(3):
        await lab.send(20)
        await lab.send(20, name="another")
    await lab.until_all_seen(120)
    await lab.leave("two")
    await lab.until_assigned("one")
    await lab.consume("three")
    await lab.until_assigned("one", "three")
    await lab.send(20)
    await lab.send(20, name="another")
    await lab.until_all_seen(160)
    await lab.commit("one")
    await lab.commit("three")
    await lab.sleep(2)
    lab.fact("committed offsets, in all", await lab.committed())
    lab.fact("partitions with an offset of another group", await lab.count_committed("late"))
    await lab.consume("late", {"group.id": "late", "auto.offset.reset": "latest"})
    await lab.until_assigned("late")
    await lab.sleep(2)
    lab.fact("records that the other group has seen", lab.count_seen("late"))
    await lab.leave("late")


SCENARIO = LabScenario(
    title="A healthy cluster loses nothing, and knows no offset 0 that nobody committed",
    source="Field 10: Jepsen on Bufstream 0.1.0",
    claim=(
        "Without any fault acknowledged records were lost, consumers were told offset 0 where nothing was "
        "committed, and producers and consumers were stuck."
    ),
    play=play,
    partitions=4,
    varies_for_real=("rebalances",),
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={
        "committed offsets, in all": "160",
        "partitions with an offset of another group": "0",
        "records that the other group has seen": "0",
    },
    expected=Outcome(acknowledged="0-159", seen="0-159", rebalances=2, leader=1, leader_epoch=0),
)
