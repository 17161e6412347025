"""Producer set 3 of the leader failure analysis: five batches are written, and no acknowledgement arrives."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    lab.silence(lab.leader, "producer")
    await lab.send(40, waits=False, size=150)
    await lab.until_written(2, 3)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.until_told()
    await lab.send(10)


SCENARIO = LabScenario(
    title=(
        "An idempotent producer: the leader dies after it has written batches, and before it acknowledges "
        "them"
    ),
    source="Leader failure: Producer set 3",
    claim=(
        "The producer sends the batches again with the same sequence numbers. The new leader knows them and "
        "appends nothing: no duplicates."
    ),
    finding=(
        "Each batch is there once and in order, though five were on their way at the same time "
        "(max.in.flight.requests.per.connection)."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "enable.idempotence": "true", "batch.size": "2048", "linger.ms": "0"},
    expected=Outcome(acknowledged="0-59", leader=2, leader_epoch=1),
)
