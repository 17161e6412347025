"""The words for steps of producers and consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.base.waiting import within
from strandline.lab.admin_words import AdminWords
from strandline.lab.base import PATIENCE_SECONDS, TOPIC, Stuck, listed
from strandline.lab.clients import read_log
from strandline.lab.diaries import ConsumerDiary, ProducerDiary
from strandline.lab.timeline import STEP

_NAMED_MAX: Final = 6


class ClientWords(AdminWords):
    async def producer(
        self, name: str = "producer", settings: Mapping[str, str] | None = None
    ) -> ProducerDiary:
        """Returns the producer of this name, which the first call starts."""
        if name not in self.producers:
            given = {"bootstrap.servers": self.stage.bootstrap, **self.scenario.producer, **(settings or {})}
            made = self.stage.producer(name, given, TOPIC, self.scenario.partitions, self._look)
            self.producers[name] = made
            await made.start()
        return self.producers[name]

    async def send(self, count: int, *, name: str = "producer", waits: bool = True, size: int = 0) -> None:
        """Sends the next numbers; with `waits` it returns when the producer was told of each. With a size, the records
        are filled up to so many bytes."""
        producer = await self.producer(name)
        numbers = list(range(self._next_number, self._next_number + count))
        self._next_number += count
        acks = producer.settings.get("acks", "all")
        self._say(STEP, f"{name} sends, acks={acks}:", numbers)
        await producer.send(numbers, size)
        if waits:
            await self.until_told(name)

    async def time_to_send(self, count: int) -> float:
        """Sends the next numbers. Returns how many seconds passed until the producer was told of each."""
        began = self.now()
        await self.send(count)
        return self.now() - began

    async def until_told(self, name: str = "producer") -> None:
        """Returns at the moment at which the producer was told of its last record."""
        try:
            await within(PATIENCE_SECONDS, self.producers[name].settle())
        except TimeoutError:
            raise Stuck(f"{name} is not told what became of its records") from None

    async def consume(
        self,
        name: str = "consumer",
        settings: Mapping[str, str] | None = None,
        *,
        work_seconds: float = 0.0,
        is_told: bool = True,
    ) -> ConsumerDiary:
        """Starts a consumer, which reads from now on and works so long on each record."""
        given = {
            "bootstrap.servers": self.stage.bootstrap,
            "group.id": "group",
            **self.scenario.consumer,
            **(settings or {}),
        }
        made = self.stage.consumer(name, given, TOPIC, self._look, work_seconds)
        self.consumers[name] = made
        if is_told:
            self._say(STEP, f"{name} begins to read")
        await made.start()
        return made

    async def consume_many(self, count: int) -> list[str]:
        """Starts so many consumers, one after the other. Returns their names."""
        names = [f"member {number}" for number in range(1, count + 1)]
        self._say(STEP, f"{count} members begin to read")
        for name in names:
            await self.consume(name, is_told=False)
        return names

    async def until_seen(self, count: int, name: str = "consumer") -> None:
        await self.until(lambda: len(self.consumers[name].seen) >= count, f"{name} to read {count} records")

    async def until_all_seen(self, count: int) -> None:
        """Returns once the consumers have read so many different records, all together."""

        await self.until(lambda: self.count_all_seen() >= count, f"all consumers to read {count} records")

    async def until_assigned(self, *names: str) -> None:
        """Returns once these consumers share all partitions and each has at least one."""

        def is_shared_out() -> bool:
            shares = [self.consumers[name].assigned for name in names]
            return all(shares) and sum(map(len, shares)) == self.scenario.partitions

        await self.until(is_shared_out, f"the partitions to be shared out among {listed(names)}")
        who = listed(names) if len(names) <= _NAMED_MAX else f"{len(names)} members"
        self._say(STEP, f"all partitions are assigned to {who}")

    async def leave(self, name: str) -> None:
        """Closes the consumer in good order."""
        self._say(STEP, f"{name} leaves")
        await self.consumers[name].leave()

    async def commit(self, name: str = "consumer") -> None:
        """Has the consumer commit what it has read."""
        await self.consumers[name].commit()
        self._say(STEP, f"{name} commits its offsets")

    async def crash(self, name: str) -> None:
        """Ends the client without a word. Records that a producer has not sent yet are lost with it."""
        self._say(STEP, f"{name} crashes")
        for node in self.stage.nodes:
            self.stage.cut(name, node)
        if name in self.consumers:
            await self.consumers[name].crash()

    async def begin_transaction(self, name: str = "producer") -> None:
        await (await self.producer(name)).begin_transaction()
        self._say(STEP, f"{name} begins a transaction")

    async def commit_transaction(self, name: str = "producer") -> None:
        await self.producers[name].commit_transaction()
        self._say(STEP, f"{name} commits its transaction")

    async def abort_transaction(self, name: str = "producer") -> None:
        await self.producers[name].abort_transaction()
        self._say(STEP, f"{name} aborts its transaction")

    async def send_in_transaction(self, count: int, *, commits: bool, name: str = "producer") -> None:
        """Sends one whole transaction, and commits or aborts it."""
        await self.begin_transaction(name)
        await self.send(count, name=name)
        await (self.commit_transaction if commits else self.abort_transaction)(name)

    async def read_log(self) -> list[tuple[int, int]]:
        """Returns offset and number of each committed record of the partition, as a reader of its own sees them now."""
        settings = {"bootstrap.servers": self.stage.bootstrap}
        return await read_log(settings, self.stage.client_world("reader"), TopicPartition(TOPIC, 0))

    async def count_moved_records(self, name: str = "producer") -> int:
        """Counts the acknowledged records that are at another offset than the producer was told."""
        found = {number: offset for offset, number in await self.read_log()}
        told = self.producers[name].offsets
        return sum(found.get(number) != offset for number, offset in told.items())

    def count_seen(self, name: str = "consumer") -> int:
        return len(self.consumers[name].seen)

    def count_all_seen(self) -> int:
        """Counts the different records that all consumers together have read."""
        return len({number for each in self.consumers.values() for number in each.seen})

    def count_moved(self, name: str) -> int:
        """Counts the partitions that the consumer got or had to give up after its first assignment."""
        return self.consumers[name].moved

    def count_given_up(self, name: str) -> int:
        """Counts the partitions that the consumer had to give up, or learned that it had lost."""
        return self.consumers[name].revoked + self.consumers[name].lost

    def stalled_seconds(self, name: str) -> float:
        """Returns how long the consumer had no partition after it had had one."""
        return self.consumers[name].stalled_seconds

    def count_acknowledged(self, name: str = "producer") -> int:
        return len(self.producers[name].acknowledged)

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Goes on with the next step while this one still waits."""
        return asyncio.create_task(work)

    async def _close_clients(self) -> None:
        for producer in self.producers.values():
            await producer.close()
        for consumer in self.consumers.values():
            await consumer.close()
        if self._admin is not None:
            await self._admin.close()
