"""Responses and requests of replication arrive after another leader has written."""

from __future__ import annotations

from strandline.lab.base import TOPIC
from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.raw import fetch, said
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.cut_one_way(1, 3)
    lab.stop_replication(2)
    await lab.send(5)
    lab.note("the leader's response to broker 3, with records 100-104, is on its way for long")
    lab.kill(1)
    await lab.until_leader(2)
    await lab.send(20)
    await lab.sleep(5)
    lab.heal()
    await lab.sleep(5)
    late = await lab.connect(2, "late follower")
    for epoch, end in ((0, 105), (1, 1000)):
        response = await fetch(late, TOPIC, end, epoch, replica=3)
        lab.fact(f"a late fetch of replica 3 in epoch {epoch} from offset {end}", said(response.error_code))
    await lab.send(10)
    await lab.start(1)
    await lab.until_in_sync()
    await lab.until_replicated()
    lab.compare_copies()


SCENARIO = LabScenario(
    title="Late requests and responses of replication cut nothing and commit nothing",
    source="Field 11: redpanda#17957, redpanda#18523",
    claim="A replication request that was delayed cut the log of a follower that had newer records already.",
    finding=(
        "Here followers ask, with the leader epoch that they know. A response is taken only while the follower "
        "still follows that leader in that epoch, and a request of another epoch is refused."
    ),
    play=play,
    producer={"acks": "1"},
    only_simulated="it sends requests that no client sends",
    facts={
        "a late fetch of replica 3 in epoch 0 from offset 105": "FENCED_LEADER_EPOCH",
        "a late fetch of replica 3 in epoch 1 from offset 1000": "OFFSET_OUT_OF_RANGE",
        "copies on 1, 2, 3": "equal",
    },
    expected=Outcome(acknowledged="0-134", lost="100-104", leader=2, leader_epoch=1),
)
