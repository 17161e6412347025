"""Random events of producers and of the coordinator of their transactions: see `transaction_storm`.

In the end all is healed, each producer that still runs ends its transaction or dies in the middle of it, and
`transaction_judge` looks at the partitions: everything must be decided, and as its producer was told.
"""

from __future__ import annotations

import asyncio

from strandline.sim.engine.loop import simulated_loop
from strandline.sim.engine.trace import Trace
from strandline.sim.history import Violation
from strandline.sim.random import generator
from tests.sim.group_storm import start
from tests.sim.transaction_producers import PlainProducer, Producer, TransactionalProducer
from tests.sim.transaction_storm import TransactionStorm

_ACTS = 30
_LIVE_S = 40.0
_NAMES = ("one", "two")
_KINDS = (
    ("start",) * 4
    + ("kill", "twin", "twin")
    + ("fail-over", "fail-over", "stall-and-fail-over", "stall-and-fail-over")
    + ("change-leader", "stall", "stall-and-change-leader", "stall-and-change-leader")
    + ("shrink", "shrink", "flow", "flow", "flow")
)


class Weather:
    def __init__(self, storm: TransactionStorm) -> None:
        self._storm = storm
        self._chance = storm.chance
        self.producers: list[Producer] = []

    @property
    def living(self) -> list[Producer]:
        return [each for each in self.producers if each.is_alive]

    def start(self, name: str | None) -> None:
        producer: PlainProducer | TransactionalProducer
        producer = PlainProducer(self._storm) if name is None else TransactionalProducer(self._storm, name)
        self.producers.append(producer)
        start(producer.live())

    def start_missing(self) -> None:
        used = [each.name for each in self.living]
        for name in (*_NAMES, None):
            if name not in used:
                self.start(name)

    def act(self) -> None:
        chance, storm = self._chance, self._storm
        kind = chance.choice(_KINDS)
        partition = chance.choice(storm.partitions)
        later_s = chance.uniform(0.0, 1.5)
        match kind:
            case "start":
                self.start_missing()
            case "kill":
                if self.living:
                    chance.choice(self.living).die()
            case "twin":
                self.start(chance.choice(_NAMES))
            case "fail-over":
                storm.fail_over()
            case "stall-and-fail-over":
                storm.log.is_stalled = True
                asyncio.get_running_loop().call_later(later_s, storm.fail_over)
            case "change-leader":
                storm.change_leader()
            case "stall":
                chance.choice((storm.log, partition)).is_stalled = True
            case "stall-and-change-leader":
                for each in storm.partitions:
                    each.is_stalled = True
                asyncio.get_running_loop().call_later(later_s, storm.change_leader)
            case "shrink":
                chance.choice((storm.log, partition, partition)).set_in_sync(False)
            case "flow":
                self._flow()

    def _flow(self) -> None:
        for each in (self._storm.log, *self._storm.partitions):
            each.is_stalled = False
            each.set_in_sync(True)

    async def calm(self) -> None:
        self._flow()
        await asyncio.sleep(2.0)
        self._flow()  # after failovers that were still to come
        for producer in self.living:
            if self._chance.random() < 0.3:
                producer.die()
        self._storm.is_calm = True
        deadline = self._storm.now + _LIVE_S
        while True:
            await asyncio.sleep(8.0)
            try:
                self._storm.judge.check_end(self._storm.partitions)
                return
            except Violation as violation:
                if violation.verdict != "hanging-transaction" or self._storm.now > deadline:
                    raise


async def _story(seed: int) -> TransactionStorm:
    shape = generator(seed, "shape of a transaction storm")
    storm = TransactionStorm(seed, level=shape.choice((1, 2, 2)))
    for name in _NAMES:
        if shape.random() < 0.2:
            storm.preload(name, shape.randint(32_755, 32_766))
    storm.start()
    weather = Weather(storm)
    start(storm.replicate())
    start(storm.watch_time())
    weather.start_missing()
    await asyncio.sleep(1.0)
    for _ in range(_ACTS):
        weather.act()
        await asyncio.sleep(storm.chance.choice((0.0, 0.1, 0.5, 2.0)) * storm.chance.random())
    await weather.calm()
    return storm


def run(seed: int) -> TransactionStorm:
    """Runs one storm; raises Violation, or an assertion of the machine."""
    loop = simulated_loop(Trace())
    try:
        return loop.run_until_complete(_story(seed))
    finally:
        loop.close()
