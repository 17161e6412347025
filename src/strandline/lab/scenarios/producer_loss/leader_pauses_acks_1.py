"""The leader stands still, is replaced, and wakes up with a record in its socket."""

from __future__ import annotations

from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.producer_loss._paused_leader import wake_with_a_record_in_the_socket as play

SCENARIO = LabScenario(
    title="The leader pauses with a record of acks=1 in its socket, and wakes up deposed",
    source="Producer loss: four-row table, row 4",
    claim="Pauses may lose records for a while (possible transient loss).",
    finding=(
        "The record is acknowledged and lost for good: when the old leader wakes up it takes what waits in "
        "its socket, before it hears that another one leads. Then it cuts the record off."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    expected=Outcome(acknowledged="0-14", lost="10-14", leader=2, leader_epoch=1),
)
