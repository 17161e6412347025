"""Steps that several scenarios share: all brokers of the leader's site die, with some of the controllers."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def lose_the_site_of_the_leader(lab: Lab, *, controllers: int) -> list[int]:
    """So many of the controllers are in the site, the first ones. Returns the brokers that are lost."""
    await lab.send(100)
    await lab.until_replicated()
    racks = lab.scenario.racks
    site = racks[lab.leader - 1]
    lost = [broker for broker, rack in enumerate(racks, 1) if rack == site]
    lab.note(f"site {site} is lost")
    for node in (*lost, *range(101, 101 + controllers)):
        lab.kill(node)
    return lost
