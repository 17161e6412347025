"""Random scenarios of a cluster that judge themselves: what was acknowledged with acks=all is there, once, in order."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from strandline.sim.life import NodeHalted
from strandline.sim.wire_client import Disconnected
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.storage import names
from tests.sim.load import Load

_SETTLING_SECONDS_MAX = 120.0


async def begin(world: World, *, configs: dict[str, str] | None = None) -> tuple[list[SimulatedNode], Load]:
    nodes = world.add_cluster(3)
    await world.start_all()
    load = Load(world, None, "t", configs=configs, pause_seconds_max=0.2)
    await load.create()
    load.start()
    await asyncio.sleep(world.chance.uniform(0.0, 0.5))
    return nodes, load


async def settle(world: World, load: Load) -> None:
    """Until all nodes run, every replica is in sync, and every copy is the same."""
    for node in world.nodes.values():
        if not node.is_running:
            await node.start()
    await until(lambda: is_in_sync(world, load))
    await load.finish()
    await until(lambda: is_in_sync(world, load) and are_copies_equal(world, load))


async def until(condition: object) -> None:
    assert callable(condition)
    deadline = asyncio.get_running_loop().time() + _SETTLING_SECONDS_MAX
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "the cluster does not settle"
        await asyncio.sleep(0.1)


def is_in_sync(world: World, load: Load) -> bool:
    """On every node's own image."""
    for node in world.nodes.values():
        topic = node.broker.image.topics.get(load.topic)
        if topic is None or any(len(state.in_sync) < 3 for state in topic.partitions.values()):
            return False
    return True


def are_copies_equal(world: World, load: Load) -> bool:
    for partition in range(load.partitions):
        copies = [log_of(node, f"{DATA}/{load.topic}-{partition}") for node in world.nodes.values()]
        if any(copy != copies[0] for copy in copies):
            return False
    return True


def log_of(node: SimulatedNode, directory: str) -> bytes:
    """All of it: each replica rolls its segments where it likes."""
    found = sorted(name for name in node.disk.names(directory) if name.endswith(names.LOG))
    return b"".join(bytes(node.disk.read(f"{directory}/{name}")) for name in found)


async def judge(world: World, load: Load) -> None:
    await settle(world, load)
    await load.check()
    assert load.acknowledged_count > 0
    for node in world.nodes.values():
        for replica in node.broker.replicas.all_open():
            if replica.is_leader:
                replica.leader.check_invariants()


async def kills(world: World) -> None:
    """One node at a time, whoever it is, at any moment; also two at once, and then there is no quorum for a while."""
    chance = world.chance
    nodes, load = await begin(world)
    for _ in range(3):
        victims = chance.sample(nodes, chance.choice((1, 1, 2)))
        for victim in victims:
            if chance.random() < 0.3:
                victim.kill_amid_disk_operation(chance.randrange(200))
            elif victim.is_running:
                victim.kill()
            await asyncio.sleep(chance.choice((0.0, 0.0, chance.uniform(0.0, 2.0))))
        await asyncio.sleep(chance.uniform(0.0, 3.0))
        for node in nodes:
            node.faults.heal()
            if not node.is_running:
                world.start_task(start_again(node))
                await asyncio.sleep(chance.uniform(0.0, 1.0))
        await asyncio.sleep(chance.uniform(0.0, 3.0))
    await until(lambda: all(node.is_running for node in nodes))
    await judge(world, load)


async def start_again(node: SimulatedNode) -> None:
    if not node.is_running:
        with suppress(NodeHalted):
            await node.start()


async def power_cuts(world: World) -> None:
    """One at a time, the next when all are in sync again: what a machine forgot, the others still have."""
    chance = world.chance
    nodes, load = await begin(world)
    for _ in range(3):
        victim = chance.choice(nodes)
        victim.cut_power()
        await asyncio.sleep(chance.uniform(0.0, 15.0))
        await victim.start()
        await until(lambda: is_in_sync(world, load))
        await asyncio.sleep(chance.uniform(0.0, 0.5))
    await judge(world, load)


async def partitions(world: World) -> None:
    """A node is cut off from the others and still reachable for clients, in both directions or in one."""
    chance = world.chance
    nodes, load = await begin(world)
    for _ in range(3):
        lonely = chance.choice(nodes)
        others = [node.host for node in nodes if node is not lonely]
        if chance.random() < 0.6:
            world.network.partition([lonely.host], others)
        else:
            for other in others:
                source, target = chance.choice(((lonely.host, other), (other, lonely.host)))
                world.network.cut(source, target)
        await asyncio.sleep(chance.choice((chance.uniform(0.0, 3.0), chance.uniform(5.0, 30.0))))
        world.network.heal()
        if chance.random() < 0.5:
            world.network.break_connections(lonely.host)
        await asyncio.sleep(chance.uniform(0.0, 5.0))
    await judge(world, load)


async def rolling_restarts(world: World) -> None:
    """Each node in turn, cleanly, with the wait that the guide asks for: nobody has to hear of it but by retrying."""
    chance = world.chance
    nodes, load = await begin(world)
    for node in chance.sample(nodes, 3):
        await node.stop()
        await asyncio.sleep(chance.uniform(0.0, 1.0))
        await node.start()
        await until(lambda: is_in_sync(world, load))
    await judge(world, load)


async def everything(world: World) -> None:
    chance = world.chance
    nodes, load = await begin(world)
    for _ in range(6):
        node = chance.choice(nodes)
        act = chance.choice(("kill", "stop", "start", "cut", "break", "heal"))
        if act == "kill" and node.is_running:
            node.kill()
        elif act == "stop" and node.is_running:
            world.start_task(stop(node))
        elif act == "start" and not node.is_running:
            world.start_task(start_again(node))
        elif act == "cut":
            world.network.partition([node.host], [other.host for other in nodes if other is not node])
        elif act == "break":
            world.network.break_connections(node.host)
        elif act == "heal":
            world.network.heal()
        await asyncio.sleep(chance.uniform(0.0, 4.0))
    world.network.heal()
    await asyncio.sleep(10.0)  # who is stopping has stopped
    for node in nodes:
        if not node.is_running:
            world.start_task(start_again(node))
    await until(lambda: all(node.is_running for node in nodes))
    await judge(world, load)


async def stop(node: SimulatedNode) -> None:
    with suppress(NodeHalted, Disconnected):
        await node.stop()
