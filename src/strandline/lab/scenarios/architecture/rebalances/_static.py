"""Steps that several scenarios share: one of two static members is away for a while."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def be_away(lab: Lab, seconds: float) -> None:
    """Both members read a partition each; the first dies and comes back under its instance id."""
    await lab.send(100)
    await lab.consume("first", {"group.instance.id": "one"})
    await lab.consume("second", {"group.instance.id": "two"})
    await lab.until_assigned("first", "second")
    await lab.until_all_seen(100)
    await lab.commit("first")
    await lab.commit("second")
    await lab.crash("first")
    await lab.sleep(seconds)
    await lab.send(100)
    await lab.consume("first again", {"group.instance.id": "one"})
    await lab.until_all_seen(200)
    await lab.until_assigned("first again", "second")
    await lab.sleep(10)
    lab.fact("partitions that the other member had to take or give", lab.count_moved("second"))
