"""Steps that several scenarios share: a group has so many members, and one more comes."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def let_another_join(lab: Lab) -> None:
    """There are as many partitions as members in the end."""
    names = await lab.consume_many(lab.scenario.partitions - 1)
    await lab.until_assigned(*names)
    began = lab.now()
    await lab.consume("newcomer")
    await lab.until_assigned(*names, "newcomer")
    lab.measure("rebalance", lab.now() - began)
