"""Disks of simulated nodes that tests fill or break."""

from __future__ import annotations

from tests.disks import WatchedDisk
from tests.unit.broker.world import World


def disk_of(world: World) -> WatchedDisk:
    assert isinstance(world.disk, WatchedDisk)
    return world.disk
