"""Steps that several scenarios share: the leader is cut off from its followers, and reaches the controller."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def cut_off_the_followers(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(10, waits=False)
    await lab.until_in_sync(1)
    await lab.sleep(10)
    lab.fact("acknowledged before the links work", lab.count_acknowledged() - 100)
