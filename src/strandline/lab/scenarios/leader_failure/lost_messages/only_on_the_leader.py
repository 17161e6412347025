"""Row 3 of "What messages are lost": above the high watermark, and only on the leader."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(1, waits=False)
    await lab.sleep(1)
    lab.kill(lab.leader)
    await lab.until_told()
    await lab.until_leader_changes()


SCENARIO = LabScenario(
    title="A record above the high watermark is only on the leader, and is not sent again",
    source="Leader failure: What messages are lost, row 3",
    claim="It is lost, because no replica has it.",
    finding=(
        "With acks=all it was not acknowledged either. A producer that may not try again is told so; one that "
        "may sends it to the next leader (dies-in-stage-1)."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all", "retries": "0", "enable.idempotence": "false"},
    expected=Outcome(
        acknowledged="0-999", failed="1000", errors="NETWORK_EXCEPTION", leader=2, leader_epoch=1
    ),
)
