"""Steps that several scenarios share: three members work longer on what one poll gives than they may."""

from __future__ import annotations

from strandline.lab.lab import Lab

RECORDS = 300
WORK_SECONDS = 4.0
MINUTES = 20


async def work_too_long(lab: Lab) -> None:
    """A poll gives 100 records, on which a member works for 400 s; after 300 s it counts as dead."""
    await lab.send(RECORDS)
    for name in ("one", "two", "three"):
        await lab.consume(name, work_seconds=WORK_SECONDS)
    for _ in range(MINUTES):
        await lab.sleep(60)
        if await lab.committed() == RECORDS:
            break
    readings = sum(lab.count_seen(name) for name in lab.consumers)
    lab.fact("records that were worked on again", readings - lab.count_all_seen())
    lab.fact("records committed", await lab.committed())
