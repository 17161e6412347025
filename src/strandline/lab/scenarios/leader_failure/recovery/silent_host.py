"""The leader's host falls silent: nobody closes its connections."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.leader_failure.recovery._figures import begin, recover


async def play(lab: Lab) -> None:
    await begin(lab)
    lab.pause(1)
    await recover(lab)
    lab.resume(1)
    await lab.until_in_sync()


SCENARIO = LabScenario(
    title="Recovery after the leader's host has fallen silent, and nobody closes its connections",
    source="Leader failure: Leader failure timeline; Downtime during leader failure",
    claim="The controller notices it after its timeout, the clients after up to 30 s (request.timeout.ms).",
    finding=(
        "The session is 9 s long. Clients that had a request at the silent host wait for request.timeout.ms "
        "(30 s), though another broker leads for 21 s by then: this is the longest part."
    ),
    play=play,
    cluster={"offsets.topic.num.partitions": "1"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    bounds={
        "detection": (7.0, 9.1),
        "election": (0.0, 0.2),
        "metadata": (0.0, 0.2),
        "producer recovery": (30.0, 31.0),
        "consumer recovery": (29.0, 31.5),
    },
    expected=Outcome(acknowledged="0-29", seen="0-29", leader=2, leader_epoch=1),
)
