"""Retention deletes segments while a consumer asks for the offset at the time of the first record."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    began_ms = await lab.first_timestamp_ms()
    nothing, below, starts = 0, 0, set()
    for _ in range(20):
        await lab.send(10)
        for _ in range(10):
            start = await lab.log_start()
            found = await lab.offset_at(began_ms)
            nothing += found < 0
            below += 0 <= found < start
            starts.add(start)
            await lab.sleep(0.1)
    lab.fact("lookups that found no record", nothing)
    lab.fact("lookups that found a deleted record", below)
    lab.fact("retention has deleted during the lookups", len(starts) > 2)
    await lab.set_topic({"retention.ms": "-1"})


SCENARIO = LabScenario(
    title="A lookup by time while retention deletes finds the first record that is left",
    source="Field 12: redpanda#18566, redpanda#18599",
    claim=(
        "The lookup met a segment that retention had just deleted, and found nothing: the consumer went to the "
        "end of the log and skipped all records without a word."
    ),
    play=play,
    cluster={"log.retention.check.interval.ms": "1000"},
    topic={"min.insync.replicas": "2", "segment.ms": "2000", "retention.ms": "5000"},
    producer={"acks": "all"},
    varies_for_real=("lost",),
    facts={
        "lookups that found no record": "0",
        "lookups that found a deleted record": "0",
        "retention has deleted during the lookups": "True",
    },
    expected=Outcome(acknowledged="0-209", lost="0-169", leader=1, leader_epoch=0),
)
