"""The words for steps of nodes and links, and for waiting until the partition is in a state."""

from __future__ import annotations

import asyncio

from strandline.lab.base import TOPIC, LabBase, Stuck, listed
from strandline.lab.timeline import STEP


class ClusterWords(LabBase):
    def kill(self, node: int) -> None:
        if node < 0:
            raise Stuck("there is nobody to kill: nobody leads")
        self._say(STEP, f"{self._named(node)} is killed")
        self.stage.kill(node)
        self._look()

    def cut_power(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} loses its power")
        self.stage.cut_power(node)
        self._look()

    def pause(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} stands still")
        self.stage.pause(node)

    def resume(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} goes on")
        self.stage.resume(node)

    async def start(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} is started")
        await self.stage.start_node(node)

    async def stop(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} is stopped")
        await self.stage.stop_node(node)

    def replace_disk(self, node: int) -> None:
        self._say(STEP, f"{self._named(node)} gets an empty disk")
        self.stage.replace_disk(node)

    def stop_replication(self, *followers: int) -> None:
        """Cuts the followers off from the leader: those that are named, or all."""
        chosen = list(followers) or self.followers
        self._say(STEP, f"the link between the leader {self.leader} and {listed(chosen)} is cut")
        for each in chosen:
            self.stage.cut(self.leader, each)

    def cut(self, one: int | str, *others: int | str) -> None:
        self._say(STEP, f"the links between {one} and {listed(others)} are cut")
        for each in others:
            self.stage.cut(one, each)

    def silence(self, node: int, client: str) -> None:
        """Cuts the way of responses from the node to the client; the client's requests still arrive."""
        self._say(STEP, f"responses of {self._named(node)} do not reach the {client} any more")
        self.stage.cut_one_way(node, client)

    def cut_one_way(self, source: int, target: int) -> None:
        """Cuts the way from one node to another until the link is healed; the other direction works."""
        self._say(STEP, f"what {self._named(source)} sends to {target} does not arrive")
        self.stage.cut_one_way(source, target)

    def isolate(self, node: int) -> None:
        """Cuts the node off from all other nodes; clients still reach it."""
        self._say(STEP, f"{self._named(node)} is cut off from all other nodes")
        for other in self.stage.nodes:
            if other != node:
                self.stage.cut(node, other)

    def break_connections(self, host: str | int) -> None:
        """Breaks each connection of this node or client; the host may connect again at once."""
        name = self._named(host) if isinstance(host, int) else host
        self._say(STEP, f"all connections of {name} break")
        self.simulated.break_connections(host)

    def compare_copies(self) -> None:
        """Notes whether the partition's logs are the same, byte for byte, on all brokers that run."""
        copies = self.simulated.copies(TOPIC, 0)
        alike = "equal" if len(set(copies.values())) == 1 else "different"
        self.fact(f"copies on {listed(copies)}", alike)

    def leaders(self) -> str:
        """Returns the leader of each partition as text."""
        return listed(self.stage.view(TOPIC, each).leader for each in range(self.scenario.partitions))

    def last_sequence(self, broker: int) -> int:
        """Returns the last sequence number that the broker knows of the only producer."""
        return self.simulated.last_sequence(broker, TOPIC, 0)

    def heal(self) -> None:
        self._say(STEP, "all links work again")
        self.stage.heal()

    # Waiting

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until_replicated(self) -> None:
        """Returns once each replica has the records of the leader, and knows that all have them."""
        await self.until(self.is_replicated, "the replicas to be equal")
        self._say(STEP, "each replica has all records")

    def is_replicated(self) -> bool:
        """True if each replica has the records of the leader, and knows that all have them."""
        replicas = self.view.replicas
        ends = {each.end_offset for each in replicas}
        return len(ends) == 1 and all(each.high_watermark == each.end_offset for each in replicas)

    async def until_written(self, *brokers: int) -> None:
        """Returns once these replicas have what the leader has, whether they know that it is committed or not."""
        await self.until(lambda: self._is_written(brokers), f"the records on {list(brokers)}")
        self._say(STEP, f"broker {listed(brokers)} has all records of the leader")

    def _is_written(self, brokers: tuple[int, ...]) -> bool:
        ends = {each.broker: each.end_offset for each in self.view.replicas}
        return ends[self.leader] == self._next_number and all(
            ends[each] == ends[self.leader] for each in brokers
        )

    async def until_committed(self) -> None:
        """Returns once the leader's high watermark is at its end; followers may not know it yet."""

        def is_committed() -> bool:
            leader = next(each for each in self.view.replicas if each.broker == self.leader)
            return leader.high_watermark == leader.end_offset == self._next_number

        await self.until(is_committed, "the high watermark to reach the leader's end", every_seconds=0.001)
        self._say(STEP, "all records are below the leader's high watermark")

    async def until_leader_changes(self) -> None:
        """Returns once another broker, or the same one in another epoch, leads and knows it."""
        before = self.view.epoch
        await self.until(lambda: self.view.epoch > before and self._leader_knows(), "another leader")
        self._look()

    async def until_leader(self, broker: int) -> None:
        await self.until(lambda: self.is_led_by(broker), f"broker {broker} to lead")
        self._look()

    def is_led_by(self, broker: int) -> bool:
        """True if this broker is the leader for the controller, and knows it."""
        return self.view.leader == broker and self._leader_knows()

    def _leader_knows(self) -> bool:
        view = self.view
        return any(
            each.broker == view.leader and each.role in ("leader", "none") and each.epoch in (view.epoch, -1)
            for each in view.replicas
        )

    async def until_offline(self) -> None:
        await self.until(lambda: self.view.leader < 0, "the partition to be offline")
        self._look()

    async def until_in_sync(self, *brokers: int) -> None:
        """Returns once the in-sync replicas are these, or all."""
        wanted = brokers or tuple(each.broker for each in self.view.replicas)
        await self.until(lambda: self.view.in_sync == tuple(sorted(wanted)), f"the ISR to be {list(wanted)}")
        self._look()
