"""The diaries of producers and consumers: what each was told and what it saw, whichever library it is of."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping


class ProducerDiary(ABC):
    """A producer that sends numbered records, in turn to each partition, and keeps what it is told of each."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
    ) -> None:
        self.name = name
        self.settings = settings
        self._topic = topic
        self._partitions = partitions
        self._on_result = on_result
        self._result = asyncio.Event()
        self.sent: list[int] = []
        self.acknowledged: list[int] = []
        self.aborted: list[int] = []
        self.failed: dict[int, str] = {}
        self.offsets: dict[
            int, int
        ] = {}  # that it was told, by the records' numbers; only Strandline's client has them
        self._in_transaction: list[int] | None = None

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def _append(self, number: int, value: bytes, partition: int) -> None:
        """Gives one record to the library; `_ended` is called with its fate."""

    @abstractmethod
    async def _begin(self) -> None: ...

    @abstractmethod
    async def _commit(self) -> None: ...

    @abstractmethod
    async def _abort(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def begin_transaction(self) -> None:
        await self._begin()
        self._in_transaction = []

    async def commit_transaction(self) -> None:
        await self._commit()
        self.acknowledged += self._in_transaction or ()
        self._in_transaction = None

    async def abort_transaction(self) -> None:
        await self._abort()
        self.aborted += self._in_transaction or ()
        self._in_transaction = None

    async def send(self, numbers: list[int], size: int = 0) -> None:
        """Appends the records; an error at once counts like one that comes later."""
        for number in numbers:
            self.sent.append(number)
            await self._append(number, (b"%d" % number).ljust(size), number % self._partitions)

    def _ended(self, number: int, error: str | None) -> None:
        if error is None:
            # A record of a transaction counts when the transaction is committed.
            (self.acknowledged if self._in_transaction is None else self._in_transaction).append(number)
        else:
            self.failed[number] = error
        self._result.set()
        self._on_result()

    @property
    def is_settled(self) -> bool:
        waiting = self._in_transaction or ()
        return len(self.acknowledged) + len(self.aborted) + len(self.failed) + len(waiting) == len(self.sent)

    @property
    def untold(self) -> set[int]:
        """The records about which it was told nothing, other than those of aborted transactions."""
        return set(self.sent) - set(self.acknowledged) - set(self.aborted) - set(self.failed)

    async def settle(self) -> None:
        """Returns when the producer was told of each record."""
        while not self.is_settled:
            self._result.clear()
            await self._result.wait()


class ConsumerDiary(ABC):
    """A consumer that reads in the background, from the beginning unless the settings say otherwise."""

    def __init__(
        self,
        name: str,
        now: Callable[[], float],
        on_change: Callable[[], None],
        work_seconds: float = 0.0,
    ) -> None:
        self.name = name
        self._now = now
        self._on_change = on_change
        self._idle_since: float | None = None
        self.work_seconds = work_seconds  # for each record
        self.seen: list[int] = []
        self.assigned: set[int] = set()
        self.rebalances = 0
        self.revoked = 0  # partitions that it had to give up
        self.moved = 0  # partitions that it was given or had to give up after its first assignment
        self.lost = 0  # partitions that it learned to be gone
        self.stalled_seconds = 0.0  # in which it had no partition, after it had one
        self.errors: list[str] = []
        self.is_crashed = False

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def commit(self) -> None:
        """Commits the positions that it has read to."""

    @abstractmethod
    async def _end_polling(self) -> None: ...

    @abstractmethod
    async def _leave(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def crash(self) -> None:
        """Reads no more, and says nothing to the group."""
        self.is_crashed = True
        self.assigned = set()
        await self._end_polling()

    async def leave(self) -> None:
        """Closes the consumer, as an application does that ends in good order."""
        await self._end_polling()
        await self._leave()
        self.assigned = set()

    async def _work_on(self, numbers: list[int]) -> None:
        if not self.work_seconds:
            self.seen += numbers
            self._on_change()
            return
        for number in numbers:
            await asyncio.sleep(self.work_seconds)
            self.seen.append(number)
            self._on_change()

    def _stopped_by(self, error: str) -> None:
        self.errors.append(error)
        self._on_change()

    def _assign(self, partitions: set[int]) -> None:
        self.rebalances += 1
        self.moved += len(partitions) if self.rebalances > 1 else 0
        self.assigned |= partitions
        if self.assigned and self._idle_since is not None:
            self.stalled_seconds += self._now() - self._idle_since
            self._idle_since = None

    def _revoke(self, partitions: set[int]) -> None:
        self.revoked += len(partitions)
        self._give_up(partitions)

    def _lose(self, partitions: set[int]) -> None:
        self.lost += len(partitions)
        self._give_up(partitions)

    def _give_up(self, partitions: set[int]) -> None:
        self.moved += len(partitions)
        self.assigned -= partitions
        if not self.assigned and self._idle_since is None:
            self._idle_since = self._now()
