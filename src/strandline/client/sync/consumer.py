"""The blocking consumer. Rebalance listeners run in the thread that polls, as in Java, and may use the consumer."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from strandline.base.ids import TopicPartition
from strandline.client.config.keywords import ConsumerKeywords
from strandline.client.consumer.consumer import POLL_SECONDS
from strandline.client.consumer.consumer import Consumer as AsyncConsumer
from strandline.client.consumer.group.callbacks import RebalanceListener, check_listener
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import ClosedError
from strandline.client.sync.blocking import calls_of, result_within
from strandline.client.sync.calls import ConsumerCalls

if TYPE_CHECKING:
    import pyarrow


@calls_of(AsyncConsumer)
class Consumer(ConsumerCalls):
    """`strandline.client.Consumer`, blocking; iterating gives records for ever."""

    _client: AsyncConsumer

    def __init__(
        self,
        settings: Mapping[str, Any] | str | None = None,
        /,
        *topics: str,
        **keywords: Unpack[ConsumerKeywords],
    ) -> None:
        """Takes settings as the asyncio client does, and connects."""
        super().__init__(lambda: AsyncConsumer(settings, *topics, **keywords))

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribes as the asyncio consumer does. The listener is called in the thread that polls, closes or
        unsubscribes."""
        self._check_process()
        check_listener(listener)
        adapter: Any = (
            None if listener is None else _CallerThreadListener(listener, self._thread.ask_the_caller)
        )
        self._thread.call(lambda: self._client.subscribe(topics, pattern=pattern, listener=adapter))

    def begin_poll_table(self, timeout: float | None = POLL_SECONDS, **limits: Any) -> PendingTable:
        """Starts `poll_table` in the background, so that one table is made while another is used. The consumer must
        not be used for anything else before its result is there."""
        self._check_process()
        return PendingTable(self._thread.start(self._client.poll_table(timeout, **limits)))

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> CommitResult:
        """Starts a commit. Such commits are carried out in order. The error of one is only in its result."""
        self._check_process()
        return CommitResult(self, self._thread.call(lambda: self._client.commit_async(offsets)))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yields records one by one, until the consumer is closed. Commits cover only the records that were given."""
        while True:
            try:
                record = self.getone()
            except ClosedError:
                return
            yield record
            # A call on the loop thread costs more than a record, so records of the last poll are taken without one.
            while (more := self._client.getone_nowait()) is not None:
                yield more


class PendingTable:
    """A table that is being polled in the background."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def result(self) -> pyarrow.RecordBatch:
        """Waits for the table, or raises the error of `poll_table`."""
        return self._work.result()

    def abandon(self) -> None:
        """Cancels the poll: nobody needs the table any more, and the consumer will be closed."""
        self._work.cancel()


class CommitResult:
    """The outcome of a commit that was not waited for."""

    def __init__(self, consumer: Consumer, work: asyncio.Task[None]) -> None:
        self._consumer = consumer
        self._work = work

    def done(self) -> bool:
        """Returns True if the commit has ended."""
        return self._work.done()

    def result(self, timeout: float | None = None) -> None:
        """Waits for it; raises its error, or KafkaTimeoutError after `timeout` seconds."""
        self._consumer._thread.run(self._wait(timeout))

    async def _wait(self, timeout: float | None) -> None:
        await result_within(timeout, asyncio.shield(self._work), "the commit got no response")


class _CallerThreadListener:
    """A listener as the asyncio consumer takes it: its methods are coroutines that call the application's methods in
    the thread that polls."""

    def __init__(
        self, listener: RebalanceListener, ask_the_caller: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._listener = listener
        self._ask_the_caller = ask_the_caller

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._listener, name)
        if inspect.iscoroutinefunction(method):
            return method
        return lambda partitions: self._ask_the_caller(lambda: method(partitions))
