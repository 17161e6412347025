"""Leaders A, B and C die one after the other while a batch is sent again and again."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.silence(1, "producer")
    await lab.send(10, waits=False)
    await lab.until_written(2, 3)
    lab.kill(1)
    await lab.until_leader(2)
    lab.silence(2, "producer")
    await lab.sleep(35)
    lab.kill(2)
    await lab.until_leader(3)
    await lab.until_told()


SCENARIO = LabScenario(
    title="Elections A, B, C: the same batch is sent to three leaders",
    source="Idempotence: Repeated elections",
    claim="Each leader knows the sequence numbers from the log: the batch is there once.",
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all", "enable.idempotence": "true"},
    expected=Outcome(acknowledged="0-109", leader=3, leader_epoch=2),
)
