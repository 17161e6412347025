"""Steps that several scenarios share: a fourth member joins three that read."""

from __future__ import annotations

from strandline.lab.lab import Lab

MEMBERS = ("one", "two", "three")


async def join(lab: Lab) -> None:
    """Six partitions; each of the three has two, and one of them in the end."""
    for name in MEMBERS:
        await lab.consume(name)
    await lab.until_assigned(*MEMBERS)
    await lab.send(60)
    await lab.until_all_seen(60)
    before = sum(map(lab.count_given_up, MEMBERS))
    began = lab.now()
    await lab.consume("newcomer")
    await lab.until_assigned(*MEMBERS, "newcomer")
    lab.measure("rebalance", lab.now() - began)
    lab.measure("longest time without partitions", max(map(lab.stalled_seconds, MEMBERS)))
    await lab.send(60)
    await lab.until_all_seen(120)
    lab.fact("partitions given up", sum(map(lab.count_given_up, MEMBERS)) - before)
