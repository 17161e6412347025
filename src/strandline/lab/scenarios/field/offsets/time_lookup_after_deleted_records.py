"""Records are deleted, and a consumer asks for the offset at a time before that."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.sleep(10)
    began_ms = await lab.first_timestamp_ms()
    await lab.send(10)
    for before in (0, 5, 12):
        if before:
            await lab.delete_records(before)
        lab.fact(
            f"offset at the first record's time, records before {before} deleted",
            await lab.offset_at(began_ms),
        )
    await lab.delete_records(20)
    lab.fact("offset at the first record's time, all records deleted", await lab.offset_at(began_ms))


SCENARIO = LabScenario(
    title="The offset at a time is never below the beginning of the log",
    source="Field 12: redpanda#18282",
    claim="After DeleteRecords ListOffsets by time told an offset that was deleted: the consumer's fetch failed.",
    finding="The deleted records are still in the file; the lookup begins at the first offset that is left.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={
        "offset at the first record's time, records before 0 deleted": "0",
        "offset at the first record's time, records before 5 deleted": "5",
        "offset at the first record's time, records before 12 deleted": "12",
        "offset at the first record's time, all records deleted": "-1",
    },
    expected=Outcome(acknowledged="0-19", lost="0-19", leader=1, leader_epoch=0),
)
