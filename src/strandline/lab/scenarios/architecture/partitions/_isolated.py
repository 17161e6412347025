"""Steps that several scenarios share: the leader is cut off from all brokers and controllers."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def isolate_the_leader(lab: Lab) -> None:
    """A producer stays on the side of the old leader, another one is on the other side."""
    await lab.producer("stranded", {"bootstrap.servers": lab.stage.address(1)})
    await lab.send(50)
    await lab.send(50, name="stranded")
    await lab.until_replicated()
    lab.isolate(1)
    lab.cut("producer", 1)
    await lab.send(5, name="stranded", waits=False)
    await lab.until_leader_changes()
    await lab.send(5)
    await lab.sleep(60)
    lab.heal()
    await lab.until_told("stranded")
    await lab.until_in_sync()
    await lab.until_replicated()
