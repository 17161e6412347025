"""The faults of a scenario: a list of events, drawn from the seed before the run, so that it can be shrunk.

An event strikes at a moment of the faulty phase and lasts for some seconds; then its harm is undone. What may be lost
is Kafka's contract: a process that is killed loses nothing that was written. A machine without power, or a disk whose
sync failed, loses what was not synced: such an event waits until every replica is in sync, and until all are again
nobody else is killed. A controller cannot tell a killed process from a machine without power, and of the two replicas
that must have a record before it is committed one may end uncleanly, not both (KIP-966).
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from strandline.sim.engine.process_life import NodeHalted
from strandline.sim.random import Generator
from strandline.sim.search import damage
from strandline.sim.world import SimulatedNode, World

_STOP_SECONDS_MAX: Final = 60.0
_DISK_OPERATIONS_MAX: Final = 200
# How long the run waits for a disk operation, in tenths of a second.
_DISK_OPERATION_TURNS: Final = 30
_CLOCK_RATES: Final = (0.5, 0.9, 1.1, 2.0)
_CLOCK_JUMPS_MS: Final = (-3_600_000, -5_000, 5_000, 3_600_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEvent:
    """One fault, at a time, for some seconds, on a node. The kind says how `number` is used: as a count of nodes or
    disk operations, or as the choice of a rate."""

    kind: str
    at: float
    seconds: float
    node: int
    number: int = 0

    def as_toml(self) -> str:
        return (
            f'[[event]]\nkind = "{self.kind}"\nat = {self.at!r}\nseconds = {self.seconds!r}\n'
            f"node = {self.node}\nnumber = {self.number}\n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultMix:
    """The way in which a scenario's events are drawn: kinds (a kind that is named twice is drawn twice as often), how
    many, how long."""

    kinds: tuple[str, ...]
    count: int
    every_s: float
    seconds: tuple[float, float]


def draw(plan: FaultMix, nodes: range, chance: Generator) -> list[FaultEvent]:
    events, at = [], 0.0
    for _ in range(plan.count):
        at += chance.uniform(0.0, 2 * plan.every_s)
        seconds = chance.uniform(*plan.seconds)
        if chance.random() < 0.2:
            seconds = 0.0
        events.append(
            FaultEvent(
                kind=chance.choice(plan.kinds),
                at=at,
                seconds=seconds,
                node=chance.choice(nodes),
                number=chance.randrange(_DISK_OPERATIONS_MAX),
            )
        )
    return events


class Faults:
    """Carries events out, and puts everything right in the end."""

    def __init__(self, world: World, is_whole: Callable[[], bool]) -> None:
        """`is_whole` returns True while every replica is in sync."""
        self._world = world
        self._is_whole = is_whole
        self._losing = asyncio.Lock()  # one machine at a time may lose unsynced bytes
        self._has_recovered = True  # every replica has been in sync since the last such loss
        self.counts: dict[str, int] = {}

    async def run(self, events: Iterable[FaultEvent]) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        running = []
        for event in sorted(events, key=lambda each: each.at):
            await asyncio.sleep(max(0.0, begun + event.at - loop.time()))
            running.append(self._world.start_task(self._carry_out(event)))
        for each in running:
            await each

    async def _carry_out(self, event: FaultEvent) -> None:
        self._world.trace.note("fault", f"{event.kind} {event.node} {event.seconds:.3f} {event.number}")
        node = self._world.nodes[event.node]
        if await KINDS[event.kind](self, node, event):
            self.counts[event.kind] = self.counts.get(event.kind, 0) + 1

    async def heal(self) -> None:
        """Ends all faults: all nodes run, on sound disks and wires, with clocks of one rate."""
        self._world.network.heal()
        for node in self._world.nodes.values():
            node.faults.heal()
            node.volume.capacity_bytes = 1 << 40
            if node.life.is_paused:
                node.resume()
            if node.clock.rate != 1.0:
                node.set_clock_rate(1.0)
        await asyncio.sleep(1.0)
        for node in self._world.nodes.values():
            self._start(node)

    def _start(self, node: SimulatedNode) -> None:
        if not node.is_running:
            self._world.start_task(start_again(node))

    # Kinds: each returns whether it did anything

    async def kill(self, node: SimulatedNode, event: FaultEvent) -> bool:
        if not node.is_running or not self._has_recovered:
            return False
        node.kill()
        await asyncio.sleep(event.seconds)
        self._start(node)
        return True

    async def kill_all(self, node: SimulatedNode, event: FaultEvent) -> bool:
        """Kills every broker; they come back one after the other."""
        others = [each for each in self._brokers() if each is not node]
        if event.number % 2:
            others.reverse()
        step = event.seconds / (1 + len(others))
        killed = [
            self._world.start_task(self.kill(each, replace(event, seconds=step * (place + 1))))
            for place, each in enumerate([*others, node])
        ]
        return any([await each for each in killed])

    def _brokers(self) -> list[SimulatedNode]:
        return [each for each in self._world.nodes.values() if each.config.is_broker]

    async def kill_two(self, node: SimulatedNode, event: FaultEvent) -> bool:
        others = [each for each in self._brokers() if each is not node]
        other = others[event.number % len(others)]
        first = self._world.start_task(self.kill(node, event))
        second = await self.kill(other, event)
        return await first or second

    async def kill_in_disk_operation(self, node: SimulatedNode, event: FaultEvent) -> bool:
        if not node.is_running or not self._has_recovered:
            return False
        life = node.life
        node.kill_amid_disk_operation(event.number)
        for _ in range(_DISK_OPERATION_TURNS):
            await asyncio.sleep(0.1)
            if not life.is_alive:
                break
        node.faults.spare()
        if life.is_alive:
            return False
        await asyncio.sleep(event.seconds)
        self._start(node)
        return True

    async def stop(self, node: SimulatedNode, event: FaultEvent) -> bool:
        if not node.is_running or node.life.is_paused:
            return False
        with suppress(NodeHalted, TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS_MAX):
                await node.stop()
        await asyncio.sleep(event.seconds)
        self._start(node)
        return True

    async def pause(self, node: SimulatedNode, event: FaultEvent) -> bool:
        if not node.is_running or node.life.is_paused:
            return False
        paused = node.life
        node.pause()
        await asyncio.sleep(event.seconds)
        if node.life is paused and paused.is_paused:
            node.resume()
        return True

    async def partition(self, node: SimulatedNode, event: FaultEvent) -> bool:
        others = [each.host for each in self._world.nodes.values() if each is not node]
        return await self._cut(event, [pair for o in others for pair in ((node.host, o), (o, node.host))])

    async def cut_one_way(self, node: SimulatedNode, event: FaultEvent) -> bool:
        others = [each.host for each in self._world.nodes.values() if each is not node]
        return await self._cut(
            event,
            [
                (node.host, other) if event.number >> place & 1 else (other, node.host)
                for place, other in enumerate(others)
            ],
        )

    async def _cut(self, event: FaultEvent, pairs: list[tuple[str, str]]) -> bool:
        """Cuts these directions for a while. Faults overlap, so each takes back its own cuts only."""
        network = self._world.network
        for pair in pairs:
            network.cut(*pair)
        await asyncio.sleep(event.seconds)
        for pair in pairs:
            network.mend(*pair)
        return True

    async def break_connections(self, node: SimulatedNode, event: FaultEvent) -> bool:
        self._world.network.break_connections(node.host)
        return True

    async def clock_jump(self, node: SimulatedNode, event: FaultEvent) -> bool:
        node.clock.wall_jump_ms += _CLOCK_JUMPS_MS[event.number % len(_CLOCK_JUMPS_MS)]
        return True

    async def clock_rate(self, node: SimulatedNode, event: FaultEvent) -> bool:
        node.set_clock_rate(_CLOCK_RATES[event.number % len(_CLOCK_RATES)])
        await asyncio.sleep(event.seconds)
        node.set_clock_rate(1.0)
        return True

    async def disk_full(self, node: SimulatedNode, event: FaultEvent) -> bool:
        node.volume.capacity_bytes = node.volume.used_bytes + event.number * 10
        await asyncio.sleep(event.seconds)
        node.volume.capacity_bytes = 1 << 40
        return True

    async def power_cut(self, node: SimulatedNode, event: FaultEvent) -> bool:
        async def cut() -> None:
            node.cut_power()
            await asyncio.sleep(event.seconds)

        return await self._lose(node, cut)

    async def sync_fails(self, node: SimulatedNode, event: FaultEvent) -> bool:
        """Makes one of the next syncs fail: the directory goes offline, and a broker with one directory stops."""

        async def fail() -> None:
            node.may_halt = True
            node.faults.fail("sync", "*", errno.EIO, pass_first=event.number % 5, times=1)
            await asyncio.sleep(event.seconds + 1.0)
            node.faults.heal()
            node.may_halt = False
            if node.is_running:
                node.kill()  # the state of its pages is unknown: it has to read its disk again

        return await self._lose(node, fail)

    async def _lose(self, node: SimulatedNode, act: Callable[[], Awaitable[None]]) -> bool:
        async with self._losing:
            if not await self._until_whole() or not node.is_running or node.life.is_paused:
                return False
            self._has_recovered = False
            await act()
            self._start(node)
            self._has_recovered = await self._until_whole()
        return True

    async def flip_bit(self, node: SimulatedNode, event: FaultEvent) -> bool:
        """Flips a bit in a log of a node that dies, which cuts the log there when it recovers, or in records that a
        node has written long ago, where a reader finds it. Either way the node must fetch the records from the
        others."""
        async with self._losing:
            if not await self._until_whole() or not node.is_running or node.life.is_paused:
                return False
            partitions = damage.partitions_on(node)
            dies = event.number % 2 == 0
            segments = damage.segments_of(node, partitions, closed_only=not dies)
            chance = self._world.generator("flip-bit", event.at)
            if not segments or damage.flip_some_bit(node.disk, segments, chance) is None:
                return False
            self._has_recovered = False
            if dies:
                node.kill()
            await asyncio.sleep(event.seconds)
            self._start(node)
            is_whole = await self._until_whole() and await damage.read_copies(self._world, node, partitions)
            self._has_recovered = is_whole and await self._until_whole()
        return True

    async def _until_whole(self) -> bool:
        for _ in range(300):
            if all(node.is_running for node in self._world.nodes.values()) and self._is_whole():
                return True
            await asyncio.sleep(0.1)
        return False


async def start_again(node: SimulatedNode) -> None:
    if not node.is_running:
        with suppress(NodeHalted):
            await node.start()


KINDS: Final[dict[str, Callable[[Faults, SimulatedNode, FaultEvent], Awaitable[bool]]]] = {
    "kill": Faults.kill,
    "kill-two": Faults.kill_two,
    "kill-all": Faults.kill_all,
    "kill-in-disk-operation": Faults.kill_in_disk_operation,
    "stop": Faults.stop,
    "pause": Faults.pause,
    "partition": Faults.partition,
    "cut-one-way": Faults.cut_one_way,
    "break-connections": Faults.break_connections,
    "clock-jump": Faults.clock_jump,
    "clock-rate": Faults.clock_rate,
    "disk-full": Faults.disk_full,
    "power-cut": Faults.power_cut,
    "sync-fails": Faults.sync_fails,
    "flip-bit": Faults.flip_bit,
}
