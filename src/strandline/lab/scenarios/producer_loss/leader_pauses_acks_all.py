"""The leader stands still, is replaced, and wakes up with a record in its socket; the producer waits for all."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.producer_loss._paused_leader import wake_with_a_record_in_the_socket as play

SCENARIO = LabScenario(
    title="The leader pauses with a record of acks=all in its socket, and wakes up deposed",
    source="Producer loss: four-row table, row 4",
    claim="Pauses may lose records for a while (possible transient loss).",
    finding=(
        "The old leader writes the record and cannot acknowledge it: no replica fetches from it any more. The "
        "producer sends the record to the new leader."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-14", leader=2, leader_epoch=1),
)
