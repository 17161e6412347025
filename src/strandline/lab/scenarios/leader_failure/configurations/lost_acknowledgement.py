"""Configuration 5 of the leader failure analysis: the followers have the record, and the acknowledgement is lost."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.silence(lab.leader, "producer")
    await lab.send(1, waits=False)
    await lab.sleep(1)
    await lab.until_replicated()
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    await lab.until_told()


SCENARIO = LabScenario(
    title="The leader dies after the followers have the record and before the acknowledgement",
    source="Leader failure: Configuration 5",
    claim=("The producer sends record 1000 again, and the new leader knows it: no loss, no duplicate."),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "enable.idempotence": "true"},
    expected=Outcome(acknowledged="0-1000", leader=2, leader_epoch=1),
)
