"""Producer set 1 of the leader failure analysis: what fails is not sent again."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    lab.pause(lab.leader)
    await lab.send(10, waits=False)
    await lab.sleep(1)
    lab.kill(lab.leader)
    await lab.until_told()
    await lab.until_leader(2)
    await lab.send(10)


SCENARIO = LabScenario(
    title="retries=0: the leader dies under a batch",
    source="Leader failure: Producer set 1; Producer loss: Scenario 2",
    claim="The second batch is lost, and the producer goes on.",
    finding=("The producer is told of the error: the records are lost only for those who do not look at it."),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1", "retries": "0", "enable.idempotence": "false"},
    expected=Outcome(
        acknowledged="0-9, 20-29", failed="10-19", errors="NETWORK_EXCEPTION", leader=2, leader_epoch=1
    ),
)
