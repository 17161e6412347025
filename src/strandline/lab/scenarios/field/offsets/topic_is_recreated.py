"""The topic is deleted and created again while a producer and a consumer use it."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(10)
    await lab.until_seen(10)
    await lab.stop(1)
    await lab.until_leader(2)
    await lab.start(1)
    await lab.until_in_sync()
    await lab.send(10)
    await lab.until_seen(20)
    await lab.recreate_topic()
    await lab.send(10)
    await lab.send(10)
    await lab.until_seen(40)
    await lab.until_replicated()


SCENARIO = LabScenario(
    title="The topic is deleted and created again: clients go on with the new one",
    source="Field 15: notes of Redpanda 26.2.5; kfake, follow_recreated",
    claim="Brokers told of the old topic's id and leader epoch, and clients stopped producing.",
    finding=(
        "Producers and consumers notice the new topic id. They take its leader epoch 0 though that of the old "
        "topic was 1, and the consumer's position is looked up again: offset 20 of the old topic says nothing "
        "about the new one. The records of the old topic are gone, as was asked."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    only_simulated="librdkafka keeps the old topic's leader epoch, and Java's consumer its old offset",
    expected=Outcome(
        acknowledged="0-39",
        lost="0-19",
        seen="0-39",
        seen_and_lost="0-19",
        leader=1,
        leader_epoch=0,
    ),
)
