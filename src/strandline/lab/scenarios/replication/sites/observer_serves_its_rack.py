"""An observer in another site copies the topic and serves consumers there."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.set_topic({"strandline.observers": "4"})
    await lab.send(100)
    await lab.consume(settings={"client.rack": "west"})
    await lab.until_seen(100)
    await lab.sleep(2)
    lab.cut("consumer", 1)
    await lab.send(100)
    await lab.until_seen(200)
    lab.fact("the observer is in sync", 4 in lab.view.in_sync)


SCENARIO = LabScenario(
    title="An observer serves consumers of its own site",
    source="Replication: Observer replicas",
    claim="An observer copies the data, is never in the ISR, and serves reads of its site.",
    finding=(
        "Kafka has no observers: KIP-392 lets consumers read from followers that are nearby, which are in the "
        "ISR or not. Strandline has both (strandline.observers). The consumer reads on here though it reaches "
        "the leader no more."
    ),
    play=play,
    brokers=4,
    racks=("east", "east", "east", "west"),
    cluster={"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={"the observer is in sync": "False"},
    expected=Outcome(acknowledged="0-199", seen="0-199", leader=1, leader_epoch=0),
)
