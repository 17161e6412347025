"""The world that the real client is given in a simulation."""

from __future__ import annotations

from strandline.client.world import ClientWorld
from strandline.sim.clock import SimulatedClock
from strandline.sim.random import SimulatedRandom
from strandline.sim.workers import SimulatedWorkers
from strandline.sim.world import PORT, World


def client_world(world: World, name: str = "client") -> ClientWorld:
    return ClientWorld(
        network=world.clients,
        clock=SimulatedClock(world.loop),
        random=SimulatedRandom(world.generator(name)),
        workers=SimulatedWorkers(world.loop, world.generator(f"{name} workers")),
    )


def bootstrap(world: World) -> str:
    return ",".join(f"{node.host}:{PORT}" for node in world.nodes.values())
