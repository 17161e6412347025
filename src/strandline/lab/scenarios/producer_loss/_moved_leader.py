"""Steps that several scenarios share: leadership moves, and the producer does not know it."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def send_to_the_former_leader(lab: Lab) -> None:
    """The producer knows broker 2 as leader; broker 1 leads again by the time at which it sends."""
    await lab.stop(1)
    await lab.until_leader(2)
    await lab.send(10)
    await lab.start(1)
    await lab.until_in_sync()
    await lab.elect_preferred()
    await lab.until_leader(1)
    await lab.send(10)
