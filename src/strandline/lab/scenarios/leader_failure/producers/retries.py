"""Producer set 2 of the leader failure analysis: what fails is sent again."""

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
    await lab.send(10)


SCENARIO = LabScenario(
    title="Retries: the leader dies under a batch",
    source="Leader failure: Producer set 2",
    claim=(
        "The second batch is sent again to the new leader. It takes as long as the request's timeout, 30 s."
    ),
    finding=(
        "A leader that crashes closes its connections, and the producer sends the batch again at once. "
        "It waits for request.timeout.ms only where the leader's host is silent."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1", "enable.idempotence": "false"},
    expected=Outcome(acknowledged="0-29", leader=2, leader_epoch=1),
)
