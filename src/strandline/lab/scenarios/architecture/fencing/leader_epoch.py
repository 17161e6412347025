"""Requests of an old leader epoch, and those to a former leader, are refused."""

from __future__ import annotations

from strandline.lab.base import TOPIC
from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.raw import fetch, said
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.stop(1)
    await lab.until_leader(2)
    await lab.start(1)
    await lab.until_in_sync()
    reader = await lab.connect(2)
    for epoch in (0, 1, 2):
        response = await fetch(reader, TOPIC, 0, epoch)
        lab.fact(f"a fetch that believes in leader epoch {epoch}", said(response.error_code))
    late = await lab.raw_producer("late producer", node=1)
    lab.fact("a batch for the former leader", await late.write(lab.next_numbers(5)))
    await lab.send(5)


SCENARIO = LabScenario(
    title="Fencing by the leader epoch",
    source="Architecture: Split-brain prevention",
    claim="A broker refuses requests with an older leader epoch: NotLeaderError.",
    finding=(
        "A Produce has no leader epoch: a former leader refuses it because it leads no more, as soon as it "
        "knows. A Fetch has one, and is refused both if it is older and if it is newer than the broker's. So "
        "followers and consumers cannot mistake a former leader for the present one."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    only_simulated="it sends requests that no client sends",
    facts={
        "a fetch that believes in leader epoch 0": "FENCED_LEADER_EPOCH",
        "a fetch that believes in leader epoch 1": "written",
        "a fetch that believes in leader epoch 2": "UNKNOWN_LEADER_EPOCH",
        "a batch for the former leader": "NOT_LEADER_OR_FOLLOWER",
    },
    expected=Outcome(
        acknowledged="0-9, 15-19", failed="10-14", errors="NOT_LEADER_OR_FOLLOWER", leader=2, leader_epoch=1
    ),
)
