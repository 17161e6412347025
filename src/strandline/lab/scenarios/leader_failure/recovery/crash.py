"""The leader's process dies: how long each part of the recovery takes."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.leader_failure.recovery._figures import begin, recover


async def play(lab: Lab) -> None:
    await begin(lab)
    lab.kill(1)
    await recover(lab)


SCENARIO = LabScenario(
    title="Recovery after a crash, part by part",
    source="Leader failure: Leader failure timeline; Downtime during leader failure",
    claim="Detection takes 0-6 s, the election 50-200 ms, metadata 10-100 ms; the clients take up to 30 s.",
    finding=(
        "The operating system closes the connections of a process that dies, and its address refuses new "
        "ones: the controller asks, and needs no timeout. Clients notice the same way. Apache Kafka waits for "
        "the session (crash-noticed-by-session)."
    ),
    play=play,
    cluster={"offsets.topic.num.partitions": "1"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    bounds={
        "detection": (0.0, 0.2),
        "election": (0.0, 0.2),
        "metadata": (0.0, 0.2),
        "producer recovery": (0.0, 1.0),
        "consumer recovery": (0.0, 1.0),
    },
    expected=Outcome(acknowledged="0-29", seen="0-29", leader=2, leader_epoch=1),
)
