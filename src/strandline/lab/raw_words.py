"""The words for requests that no client would send. They need the simulator."""

from __future__ import annotations

from strandline.lab.base import TOPIC, LabBase
from strandline.lab.raw import RawProducer
from strandline.lab.raw_frames import RawFrames
from strandline.lab.timeline import STEP
from strandline.sim.wire_client import WireClient


class RawWords(LabBase):
    async def connect(self, node: int, name: str = "raw") -> WireClient:
        """Opens a connection to a node, on the listener that it has, for requests of the scenario's own."""
        return await self.simulated.connect(node, name)

    async def raw_producer(
        self, name: str = "producer", *, node: int = 1, transactional_id: str | None = None, version: int = 2
    ) -> RawProducer:
        """Returns a producer whose every request the scenario decides, with a producer id of its own."""
        client = await self.connect(node, name)
        made = RawProducer(name, client, TOPIC, transactional_id, version, self._look)
        self.producers[name] = made
        if transactional_id is not None:
            await made.find_coordinator()
        told = await made.init()
        self._say(STEP, f"{name} has producer id {made.producer_id}, epoch {made.epoch} ({told})")
        return made

    def use_up_epochs(self, producer: RawProducer, epoch: int) -> None:
        """Gives the producer this epoch, as if it had begun and ended so many transactions."""
        self._say(STEP, f"{producer.name} has used up its epochs: it has {epoch} now")
        assert producer.transactional_id is not None
        self.simulated.set_epoch(producer.transactional_id, epoch)
        producer.epoch, producer.sequence = epoch, 0

    async def connect_frames(self, node: int = 1, name: str = "raw") -> RawFrames:
        """Opens a connection to a broker, for bytes that no encoder would write."""
        return await self.simulated.connect_frames(node, name)

    def next_numbers(self, count: int) -> list[int]:
        """Returns the numbers of the next records."""
        first = self._next_number
        self._next_number += count
        return list(range(first, first + count))
