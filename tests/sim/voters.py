"""Controllers join and leave a quorum under kills and partitions; changes that were acknowledged stay, and all nodes
agree who votes."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress

from strandline.base.errors import ErrorCode
from strandline.broker.metadata.raft_log import PARTITION
from strandline.broker.metadata.voter_records import voters_in
from strandline.controller.image_records import records_of
from strandline.quorum.messages import ReplicaKey
from strandline.quorum.roles import Leader
from strandline.quorum.voters import VoterSet
from strandline.sim.checks.log import log_of
from strandline.sim.search.faults import start_again
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.workloads.producer import ProduceRefused, create_topic
from strandline.sim.world import CONTROLLER_PORT, DATA, SimulatedNode, World
from strandline.storage import names
from strandline.wire.api.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from strandline.wire.api.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tests.sim.cluster import until

_CONTROLLERS = 4
_ANSWER_SECONDS_MAX = 10.0
_ACTS = ("add", "add", "add", "remove", "kill", "kill", "start", "start", "cut", "heal", "break")


class Topics:
    """Creates topics, one after the other, and remembers which were acknowledged."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_over = False
        self.acknowledged: list[str] = []

    async def run(self) -> None:
        number = 0
        while not self._is_over:
            number += 1
            with suppress(Disconnected, ProduceRefused):
                await create_topic(await self._world.connect_any(), f"t{number}", replication_factor=1)
                self.acknowledged.append(f"t{number}")
            await asyncio.sleep(self._world.chance_of_clients.uniform(0.0, 0.5))

    def stop(self) -> None:
        self._is_over = True


async def ask_leader(
    world: World, request: AddRaftVoterRequest | RemoveRaftVoterRequest
) -> AddRaftVoterResponse | RemoveRaftVoterResponse:
    """Asks the node that believes that it leads; raises Disconnected where none does."""
    for node in running(world):
        if isinstance(node.broker.quorum.core.role, Leader):
            client = await WireClient.connect(world.clients, node.host, CONTROLLER_PORT, "voters")
            kind = (
                AddRaftVoterResponse if isinstance(request, AddRaftVoterRequest) else RemoveRaftVoterResponse
            )
            return await client.request(request, kind, seconds_max=_ANSWER_SECONDS_MAX)
    raise Disconnected("nobody leads")


def running(world: World) -> list[SimulatedNode]:
    return [node for node in world.nodes.values() if node.is_running and node.config.is_controller]


def key_of(node: SimulatedNode) -> ReplicaKey:
    return node.broker.quorum.core.own


async def add(world: World, node: SimulatedNode) -> int:
    key = key_of(node)
    listener = Listener(name="CONTROLLER", host=node.host, port=CONTROLLER_PORT)
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1000,
        voter_id=key.replica_id,
        voter_directory_id=key.directory_id,
        listeners=(listener,),
    )
    with suppress(Disconnected):
        return (await ask_leader(world, request)).error_code
    return ErrorCode.REQUEST_TIMED_OUT


async def remove(world: World, key: ReplicaKey) -> int:
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=key.replica_id, voter_directory_id=key.directory_id
    )
    with suppress(Disconnected):
        return (await ask_leader(world, request)).error_code
    return ErrorCode.REQUEST_TIMED_OUT


def sets_of(node: SimulatedNode) -> list[VoterSet]:
    """Returns every set of voters in the metadata log of a node, in order."""
    return [change.voters for change in voters_in(metadata_log(node))]


def metadata_log(node: SimulatedNode) -> bytes:
    return log_of(node, f"{DATA}/{names.partition_directory(PARTITION)}")


def is_settled(world: World) -> bool:
    """Returns True if one node leads, and all nodes have its whole log, committed."""
    nodes = [node.broker.quorum for node in world.nodes.values() if node.is_running]
    ends = {quorum.end_offset for quorum in nodes}
    committed = {quorum.applied_offset for quorum in nodes}
    leaders = [quorum for quorum in nodes if quorum.is_leader]
    return len(leaders) == 1 and len(ends) == 1 and ends == committed


async def settle(world: World) -> None:
    world.network.heal()
    for node in world.nodes.values():
        if not node.is_running:
            world.start_task(start_again(node))
    await until(lambda: all(node.is_running for node in world.nodes.values()) and is_settled(world))


async def judge(world: World, topics: Topics) -> None:
    await settle(world)
    nodes = list(world.nodes.values())
    assert len({metadata_log(node) for node in nodes}) == 1, "the logs differ"
    for node in nodes:
        missing = [name for name in topics.acknowledged if name not in node.broker.image.topics]
        assert not missing, f"node {node.node_id} has lost {missing}"
    assert len({node.broker.quorum.core.history.last for node in nodes}) == 1
    sets = sets_of(nodes[0])
    for before, after in itertools.pairwise(sets):
        assert len(set(before.keys) ^ set(after.keys)) <= 1, f"{before.keys} became {after.keys}"
    for node in nodes:
        node.broker.quorum.core.check_invariants()


async def begin(world: World) -> tuple[list[SimulatedNode], Topics]:
    nodes = world.add_controllers(_CONTROLLERS)
    await world.start_all()
    topics = Topics(world)
    world.start_task(topics.run())
    return nodes[:_CONTROLLERS], topics


async def joining_and_leaving(world: World) -> None:
    """Any controller may be asked to join or leave, killed or cut off at any moment; at the end all come back."""
    chance = world.chance
    nodes, topics = await begin(world)
    added = 0
    for _ in range(25):
        node = chance.choice(nodes)
        act = chance.choice(_ACTS)
        if act == "add" and node.is_running:
            added += await add(world, node) == ErrorCode.NONE
        elif act == "remove" and node.is_running:
            await remove(world, key_of(node))
        elif act == "kill" and node.is_running:
            node.kill()
        elif act == "start" and not node.is_running:
            await start_again(node)
        elif act == "cut":
            world.network.partition(
                [node.host], [other.host for other in world.nodes.values() if other is not node]
            )
        elif act == "heal":
            world.network.heal()
        elif act == "break":
            world.network.break_connections(node.host)
        await asyncio.sleep(chance.choice((0.0, chance.uniform(0.0, 1.0), chance.uniform(0.0, 5.0))))
    await settle(world)
    # Whatever became of the changes before, the next one works.
    outsiders = [node for node in nodes if not node.broker.quorum.core.is_voter]
    for node in outsiders:
        await until_done(world, node)
    topics.stop()
    await judge(world, topics)
    assert topics.acknowledged
    assert {key.replica_id for key in nodes[0].broker.quorum.core.voters} == {node.node_id for node in nodes}


async def until_done(world: World, node: SimulatedNode) -> None:
    for _ in range(100):
        if await add(world, node) in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER):
            return
        await asyncio.sleep(0.5)
    raise AssertionError(f"node {node.node_id} cannot be added")


async def replaced_disk(world: World) -> None:
    """A controller's disk is lost: its id comes back as another voter, and the old one's vote is nobody's."""
    chance = world.chance
    nodes, topics = await begin(world)
    for node in nodes[1:]:
        await until_done(world, node)
    await until(lambda: is_settled(world))
    victim = chance.choice(nodes)
    old = key_of(victim)
    victim.kill()
    victim.replace_disk()
    await asyncio.sleep(chance.uniform(0.0, 3.0))
    await victim.start()
    await until(lambda: any(node.broker.quorum.is_leader for node in nodes if node is not victim))
    assert key_of(victim) != old
    assert not victim.broker.quorum.core.is_voter
    while await remove(world, old) not in (ErrorCode.NONE, ErrorCode.VOTER_NOT_FOUND):
        await asyncio.sleep(0.5)
    await until_done(world, victim)
    other = chance.choice([node for node in nodes if node is not victim])
    other.kill()
    await asyncio.sleep(chance.uniform(0.0, 5.0))
    topics.stop()
    await judge(world, topics)
    assert key_of(victim) in nodes[0].broker.quorum.core.voters


async def joining_by_themselves(world: World) -> None:
    """KIP-1186: controllers ask to be added, and those with another disk that the old one be removed first."""
    chance = world.chance
    nodes = world.add_controllers(3, 0, settings={"controller.quorum.auto.join.enable": "true"})
    await world.start_all()
    await until(lambda: all(key_of(node) in nodes[0].broker.quorum.core.voters for node in nodes))
    await until(lambda: is_settled(world))
    victim = chance.choice(nodes)
    old = key_of(victim)
    victim.kill()
    victim.replace_disk()
    await victim.start()
    for node in nodes:
        await until(lambda node=node: key_of(victim) in node.broker.quorum.core.voters)  # type: ignore[misc]
        assert old not in node.broker.quorum.core.voters
    await until(lambda: is_settled(world))
    assert len(nodes[0].broker.quorum.core.voters) == 3


async def voters_from_a_snapshot(world: World) -> None:
    """The log before a snapshot is gone: who comes later learns from the snapshot who votes, and can be added."""
    nodes, topics = await begin(world)
    first, second, _, latecomer = nodes
    await until_done(world, second)
    latecomer.kill()
    latecomer.replace_disk()
    await asyncio.sleep(world.chance.uniform(1.0, 3.0))
    for node in (first, second):
        quorum = node.broker.quorum
        await node.life.run(quorum.make_snapshot(records_of(node.broker.image), quorum.applied_offset))
        assert quorum.store.start_offset > 0
    await latecomer.start()
    await until(lambda: latecomer.broker.quorum.store.snapshot is not None)
    await until(lambda: latecomer.broker.quorum.core.voters == first.broker.quorum.core.voters)
    await until_done(world, latecomer)
    latecomer.kill()
    await latecomer.start()
    assert latecomer.broker.quorum.core.is_voter, "found again in its own snapshot and log"
    topics.stop()
    await settle(world)
    for node in world.nodes.values():
        assert [name for name in topics.acknowledged if name not in node.broker.image.topics] == []
        assert node.broker.quorum.core.voters == first.broker.quorum.core.voters
