"""The leader's process dies, and the controller notices it as Apache Kafka's does: by the session."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.leader_failure.recovery._figures import begin, recover


async def play(lab: Lab) -> None:
    await begin(lab)
    lab.cut(1, lab.controller)
    lab.kill(1)
    await recover(lab)


SCENARIO = LabScenario(
    title="Recovery after a crash that the controller notices by broker.session.timeout.ms",
    source="Leader failure: Leader failure timeline; Downtime during leader failure",
    claim="Heartbeats come every 3 s and are waited for for 6 s.",
    finding=(
        "Those were defaults of ZooKeeper's time. With KRaft a broker says every 2 s that it lives "
        "(broker.heartbeat.interval.ms), and is fenced 9 s after the last time (broker.session.timeout.ms). "
        "The link to the controller is cut here, so that nothing but the session tells of the death, as in "
        "Apache Kafka."
    ),
    play=play,
    cluster={"offsets.topic.num.partitions": "1"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    bounds={
        "detection": (7.0, 9.1),
        "election": (0.0, 0.2),
        "metadata": (0.0, 0.2),
        "producer recovery": (7.0, 10.2),
        "consumer recovery": (7.0, 10.2),
    },
    expected=Outcome(acknowledged="0-29", seen="0-29", leader=2, leader_epoch=1),
)
