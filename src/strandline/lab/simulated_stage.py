"""The simulated stage: controllers, brokers and clients in one thread and in virtual time, from a seed."""

from __future__ import annotations

from typing import Final

from strandline.client.world import ClientWorld
from strandline.lab.scenario import LabScenario
from strandline.lab.timeline import PartitionView, ReplicaView
from strandline.sim.clock import SimulatedClock
from strandline.sim.random import SimulatedRandom
from strandline.sim.workers import SimulatedWorkers
from strandline.sim.world import CONTROLLER_PORT, PORT, SimulatedNode, World, host_name

FIRST_CONTROLLER: Final = 101
NOBODY: Final = PartitionView(leader=-1, epoch=-1, in_sync=(), eligible_leaders=(), replicas=())
# Kafka's defaults, where the simulator's own cluster has others.
_DEFAULTS: Final = {
    "group.initial.rebalance.delay.ms": "3000",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
}


class SimulatedStage:
    """Brokers have the numbers 1, 2, 3; the controllers, which are nodes of their own, 101, 102, 103."""

    def __init__(self, scenario: LabScenario) -> None:
        self.world = World(scenario.seed)
        controllers = range(FIRST_CONTROLLER, FIRST_CONTROLLER + scenario.controllers)
        voters = ",".join(f"{node}@{host_name(node)}:{CONTROLLER_PORT}" for node in controllers)
        for node in controllers:
            listener = f"CONTROLLER://{host_name(node)}:{CONTROLLER_PORT}"
            own = {"process.roles": "controller", "listeners": listener, "advertised.listeners": listener}
            self._add(node, own, voters, scenario)
        for node in range(1, scenario.brokers + 1):
            own = {"process.roles": "broker", "listeners": f"PLAINTEXT://{host_name(node)}:{PORT}"}
            if scenario.racks:
                own["broker.rack"] = scenario.racks[(node - 1) % len(scenario.racks)]
            self._add(node, own, voters, scenario)
        self.brokers: dict[int, SimulatedNode] = {
            number: node for number, node in self.world.nodes.items() if number < FIRST_CONTROLLER
        }

    def _add(self, node: int, own: dict[str, str], voters: str, scenario: LabScenario) -> None:
        copies = str(min(3, scenario.brokers))
        internal = {
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": str(min(2, scenario.brokers)),
        }
        given = {**own, "controller.quorum.voters": voters, **_DEFAULTS, **internal, **scenario.cluster}
        self.world.add_node(node, settings=given)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{node.host}:{PORT}" for node in self.brokers.values())

    def now(self) -> float:
        return self.world.loop.time()

    def client_world(self, name: str) -> ClientWorld:
        """The world of one client, on a host of its own."""
        world = self.world
        return ClientWorld(
            network=world.network.host(name),
            clock=SimulatedClock(world.loop),
            random=SimulatedRandom(world.generator(name)),
            workers=SimulatedWorkers(world.loop, world.generator(f"{name} workers")),
        )

    async def start(self) -> None:
        await self.world.start_all()

    def kill(self, node: int) -> None:
        self.world.nodes[node].kill()

    def cut_power(self, node: int) -> None:
        self.world.nodes[node].cut_power()

    def pause(self, node: int) -> None:
        self.world.nodes[node].pause()

    def resume(self, node: int) -> None:
        self.world.nodes[node].resume()

    async def start_node(self, node: int) -> None:
        await self.world.nodes[node].start()

    async def stop_node(self, node: int) -> None:
        await self.world.nodes[node].stop()

    def replace_disk(self, node: int) -> None:
        self.world.nodes[node].replace_disk()

    def cut(self, one: str | int, other: str | int) -> None:
        """Cuts the link between two nodes, or a node and a client, in both directions."""
        self.world.network.partition([_host(one)], [_host(other)])

    def cut_one_way(self, source: str | int, target: str | int) -> None:
        self.world.network.cut(_host(source), _host(target))

    def heal(self) -> None:
        self.world.network.heal()

    def fenced(self) -> tuple[int, ...]:
        """The brokers that the controller has fenced."""
        controller = self._controller()
        if controller is None:
            return ()
        return tuple(sorted(each.node_id for each in controller.broker.image.brokers.values() if each.fenced))

    def active_controller(self) -> int:
        """The controller that leads the metadata quorum; -1 if none does."""
        for number, node in self.world.nodes.items():
            if number >= FIRST_CONTROLLER and node.is_running and _leads(node):
                return number
        return -1

    def view(self, topic: str, partition: int) -> PartitionView:
        controller = self._controller()
        known = controller and controller.broker.image.topics.get(topic)
        if not known:
            return NOBODY
        state = known.partitions[partition]
        return PartitionView(
            leader=state.leader,
            epoch=state.leader_epoch,
            in_sync=tuple(sorted(state.in_sync)),
            eligible_leaders=tuple(sorted(state.eligible_leaders)),
            replicas=tuple(self._replica(broker, topic, partition) for broker in sorted(state.replicas)),
        )

    def _replica(self, broker: int, topic: str, partition: int) -> ReplicaView:
        node = self.brokers[broker]
        replicas = getattr(node.broker, "replicas", None) if node.is_running else None
        replica = None if replicas is None else replicas.get(topic, partition)
        if replica is None:
            role = "none" if node.is_running else "down"
            return ReplicaView(
                broker=broker, role=role, epoch=-1, end_offset=-1, high_watermark=-1, last_stable_offset=-1
            )
        return ReplicaView(
            broker=broker,
            role="leader" if replica.is_leader else "follower",
            epoch=replica.epoch,
            end_offset=replica.log.log_end_offset,
            high_watermark=replica.high_watermark,
            last_stable_offset=replica.last_stable_offset(),
        )

    def _controller(self) -> SimulatedNode | None:
        """The active controller, or another one that runs."""
        active = self.world.nodes.get(self.active_controller())
        if active is not None:
            return active
        running = [
            node
            for number, node in self.world.nodes.items()
            if number >= FIRST_CONTROLLER and node.is_running and hasattr(node.broker, "image")
        ]
        return running[0] if running else None


def _leads(node: SimulatedNode) -> bool:
    quorum = getattr(node.broker, "quorum", None)  # there is none while it starts
    return quorum is not None and bool(quorum.is_leader)


def _host(name: str | int) -> str:
    return host_name(name) if isinstance(name, int) else name
