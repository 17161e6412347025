"""The blocking consumer. Rebalance listeners run in the thread that polls, as in Java, and may use the consumer."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer as Engine
from strandline.client.consumer.group.callbacks import RebalanceListener
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import ClosedError
from strandline.client.sync.blocking import settled_within
from strandline.client.sync.calls import ConsumerCalls

if TYPE_CHECKING:
    import pyarrow


class Consumer(ConsumerCalls):
    """`strandline.client.Consumer`, blocking; iterating gives records for ever."""

    _engine: Engine

    def __init__(self, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        super().__init__(lambda: Engine(settings, **keywords))

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """As the asyncio consumer's. The listener is called in the thread that polls, closes or unsubscribes."""
        self._check_process()
        told: Any = None if listener is None else _ListenerOfTheCaller(listener, self._thread.ask_the_caller)
        self._thread.call(lambda: self._engine.subscribe(topics, pattern=pattern, listener=told))

    def begin_poll_table(self, timeout: float = 0.0, **limits: Any) -> TableResult:
        """`poll_table` in the background, so that a table is made while another one is used. Until its result is there
        nothing else is to be done with the consumer."""
        self._check_process()
        return TableResult(self._thread.start(self._engine.poll_table(timeout, **limits)))

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> CommitResult:
        """Starts a commit; commits started so are carried out in order. Its error is only in the result."""
        self._check_process()
        return CommitResult(self, self._thread.call(lambda: self._engine.commit_async(offsets)))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records one by one until the consumer is closed; commits cover only those that were given."""
        while True:
            try:
                record = self.getone()
            except ClosedError:
                return
            yield record
            # A call on the loop thread costs more than a record, so what a poll has brought is taken without one.
            while (more := self._engine.getone_nowait()) is not None:
                yield more


class TableResult:
    """A table that was asked for and not waited for."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def result(self) -> pyarrow.RecordBatch:
        """Waits for it, or raises what `poll_table` does."""
        return self._work.result()

    def abandon(self) -> None:
        """Nobody wants it any more, and the consumer will be closed."""
        self._work.cancel()


class CommitResult:
    """What became of a commit that was not waited for."""

    def __init__(self, face: Consumer, work: asyncio.Task[None]) -> None:
        self._face = face
        self._work = work

    def done(self) -> bool:
        return self._work.done()

    def result(self, timeout: float | None = None) -> None:
        """Waits for it; raises its error, or KafkaTimeoutError after `timeout` seconds."""
        self._face._thread.run(self._wait(timeout))

    async def _wait(self, timeout: float | None) -> None:
        await settled_within(timeout, asyncio.shield(self._work), "the commit was not answered")


class _ListenerOfTheCaller:
    """Looks to the engine like a listener with coroutines."""

    def __init__(
        self, listener: RebalanceListener, ask_the_caller: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._listener = listener
        self._ask_the_caller = ask_the_caller

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._listener, name)
        if inspect.iscoroutinefunction(act):
            return act
        return lambda partitions: self._ask_the_caller(lambda: act(partitions))
