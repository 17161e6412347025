"""Steps that several scenarios share: the members of a group are restarted one after the other."""

from __future__ import annotations

from strandline.lab.lab import Lab

MEMBERS = ("one", "two", "three")


async def restart_all(lab: Lab, *, are_static: bool) -> None:
    """Each is closed in good order, and comes back after ten seconds."""

    def identity(name: str) -> dict[str, str]:
        return {"group.instance.id": name} if are_static else {}

    for name in MEMBERS:
        await lab.consume(name, identity(name))
    await lab.until_assigned(*MEMBERS)
    for name in MEMBERS:
        await lab.leave(name)
        await lab.sleep(10)
        await lab.consume(f"{name} again", identity(name))
        await lab.sleep(10)
    await lab.until_assigned(*(f"{name} again" for name in MEMBERS))
