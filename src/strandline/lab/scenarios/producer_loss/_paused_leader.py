"""Steps that several scenarios share: the leader stands still for longer than its session."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def wake_with_a_record_in_the_socket(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    lab.pause(1)
    await lab.send(5, waits=False)
    await lab.until_leader_changes()
    await lab.sleep(1)
    lab.resume(1)
    await lab.until_told()
    await lab.until_in_sync()
    await lab.until_replicated()
