"""Nobody leads, and the producer may not try again: its records wait for a leader all the same."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    lab.kill(2)
    await lab.until_in_sync(1)
    lab.kill(1)
    await lab.until_offline()
    await lab.sleep(5)
    await lab.send(10, waits=False)
    await lab.sleep(20)
    await lab.start(1)
    await lab.until_leader(1)
    await lab.until_told()


SCENARIO = LabScenario(
    title="No retries, and nobody leads: LEADER_NOT_AVAILABLE",
    source="Producer loss: Scenario 2; four-row table, row 2",
    claim=(
        "The broker responds with LeaderNotAvailable; a producer that does not retry moves on, and the record "
        "is lost."
    ),
    finding=(
        "LEADER_NOT_AVAILABLE is the response to a question for metadata, not to a record: the producer "
        "learns that nobody leads, and keeps the record for delivery.timeout.ms until somebody does. It was "
        "not sent, so nothing is sent again. Records get lost without retries when they meet a broker that "
        "leads no more (not-leader-no-retries) or one that dies (no-retries)."
    ),
    play=play,
    replication_factor=2,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all", "retries": "0", "enable.idempotence": "false"},
    expected=Outcome(acknowledged="0-19", leader=1, leader_epoch=2),
)
