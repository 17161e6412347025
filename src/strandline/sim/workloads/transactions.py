"""Transactional producers that commit, abort and die, a record to every partition in each transaction.

A producer that is lost in the middle is replaced by one with the same transactional id.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.errors import KafkaError
from strandline.client.producer.batch import RecordPromise
from strandline.client.producer.producer import Producer
from strandline.sim.client_world import bootstrap, client_world
from strandline.sim.history import ACKNOWLEDGED, COMMITTED, UNKNOWN, History, Send, TriedTransaction
from strandline.sim.workloads.log import SMALL_SEGMENTS
from strandline.sim.workloads.producer import create_topic
from strandline.sim.workloads.reading import Tail
from strandline.sim.world import World

TOPIC: Final = "transactions"
PARTITIONS: Final = 2
WORKERS: Final = 3
_PAUSE_S: Final = 0.1


def producer(world: World, name: str, **settings: Any) -> Producer:
    given: dict[str, Any] = {
        "bootstrap.servers": bootstrap(world),
        "transactional.id": name,
        "transaction.timeout.ms": 10_000,
        "max.block.ms": 60_000,
        "request.timeout.ms": 3_000,
        "delivery.timeout.ms": 20_000,
        "linger.ms": 1,
    }
    return Producer({**given, **settings}, world=client_world(world, name))


class Worker:
    """One transactional id: transactions one after the other."""

    def __init__(self, world: World, history: History, number: int, pauses: float) -> None:
        self._world = world
        self._history = history
        self._chance = world.generator("transactions", str(number))
        self.name = f"w{number}"
        self._pause_s = _PAUSE_S * pauses
        self.is_stopping = False
        self._count = 0
        self._producer: Producer | None = None

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                await self._one()
            except KafkaError:
                await self._lose_producer()
            await asyncio.sleep(self._chance.uniform(0.0, self._pause_s))
        await self._lose_producer()

    async def _one(self) -> None:
        if self._producer is None:
            self._producer = producer(self._world, self.name)
            await self._producer.start()
            await self._producer.init_transactions()
        mine, name = self._producer, f"{self.name}-{self._count:06d}"
        self._count += 1
        transaction = self._history.transactions[name] = TriedTransaction(name=name)
        mine.begin_transaction()
        for partition in range(PARTITIONS):
            where = TopicPartition(TOPIC, partition)
            send = Send(process=self.name, where=where, value=name.encode(), transaction=name)
            self._history.sends.append(send)
            promise = await mine.send(TOPIC, send.value, partition=partition)
            promise.add_done_callback(lambda done, send=send: _note(done, send))  # type: ignore[misc]
        if self._chance.random() < 0.5:
            await mine.flush()  # so that what is aborted is in the log
        if self._chance.random() < 0.1:
            await self._lose_producer()  # the application dies
            return
        if self._chance.random() < 0.3:
            await mine.abort_transaction()
            return
        await mine.flush()
        transaction.fate, transaction.commit_began_at = UNKNOWN, self._world.loop.time()
        await mine.commit_transaction()
        transaction.fate = COMMITTED

    async def _lose_producer(self) -> None:
        lost, self._producer = self._producer, None
        if lost is not None:
            with suppress(KafkaError):
                await lost.close(0)


def _note(promise: RecordPromise, send: Send) -> None:
    if promise.exception() is None:
        send.fate, send.offset = ACKNOWLEDGED, promise.result().offset


class TransactionWorkload:
    topics: Final = {TOPIC: PARTITIONS}

    def __init__(self, world: World, history: History, pauses: float) -> None:
        self._world = world
        self._workers = [Worker(world, history, number, pauses) for number in range(WORKERS)]
        self._tails = [
            Tail(world, history, TOPIC, PARTITIONS),
            Tail(world, history, TOPIC, PARTITIONS, is_committed_only=False),
        ]
        self._running: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        client = await self._world.connect_any()
        await create_topic(client, TOPIC, partitions=PARTITIONS, configs=SMALL_SEGMENTS)
        client.close()
        self._running = [self._world.start_task(worker.run()) for worker in self._workers]
        for tail in self._tails:
            await tail.begin()

    async def end(self) -> None:
        for worker in self._workers:
            worker.is_stopping = True
        for running in self._running:
            await running
        for worker in self._workers:  # aborts what was left open
            last = producer(self._world, worker.name, **{"max.block.ms": 120_000})
            await last.start()
            await last.init_transactions()
            await last.close()
        for tail in self._tails:
            await tail.end()
