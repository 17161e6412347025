"""Steps that several scenarios share: three replicas have 8, 6 and 4 records, and the two longest die."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def leave_8_6_4(lab: Lab) -> None:
    """Records 4 and 5 are committed by brokers 1 and 2, and records 6 and 7 are on broker 1 alone."""
    await lab.send(4)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(2)
    await lab.until_in_sync(1, 2)
    await lab.until_written(2)
    lab.stop_replication(2)
    await lab.send(2, waits=False)
    await lab.sleep(1)
    lab.kill(1)
    lab.kill(2)
    lab.heal()
