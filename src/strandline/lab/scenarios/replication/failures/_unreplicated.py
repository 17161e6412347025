"""Steps that several scenarios share: the leader dies with five records that nobody else has."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def die_with_five(lab: Lab) -> None:
    """The log of the leader ends at 100, its high watermark is 95."""
    await lab.send(95)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(5, waits=False)
    await lab.sleep(1)
    lab.kill(1)
    await lab.until_leader_changes()
    lab.heal()
    await lab.until_told()
