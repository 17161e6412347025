"""The blocking `DeadLetters`. Its handler runs in the thread that called `run`, and may use blocking clients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from strandline.client.config.keywords import ConsumerKeywords
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.deadletter.handler import DEFAULT_BACKOFF_MS
from strandline.client.deadletter.handler import DeadLetters as AsyncDeadLetters
from strandline.client.sync.blocking import BlockingClient


class DeadLetters(BlockingClient):
    """Runs a handler over topics, with retry topics and dead letter topics for the records that fail."""

    _client: AsyncDeadLetters

    def __init__(
        self,
        topics: Sequence[str],
        handler: Callable[[ConsumerRecord], Any],
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        backoff_ms: Sequence[int] = DEFAULT_BACKOFF_MS,
        fatal: Sequence[type[Exception]] = (),
        transactional_id: str | None = None,
        producer: Mapping[str, Any] | None = None,
        creates_topics: bool = True,
        **keywords: Unpack[ConsumerKeywords],
    ) -> None:
        """Takes the arguments of `strandline.client.DeadLetters`, and connects. The handler is a plain function."""
        if inspect.iscoroutinefunction(handler):
            raise TypeError(
                "the handler of a blocking DeadLetters is a plain function, not a coroutine function"
            )

        async def in_the_thread_of_run(record: ConsumerRecord) -> Any:
            return await self._thread.ask_the_caller(lambda: handler(record))

        super().__init__(
            lambda: AsyncDeadLetters(
                topics,
                in_the_thread_of_run,
                settings,
                backoff_ms=backoff_ms,
                fatal=fatal,
                transactional_id=transactional_id,
                producer=producer,
                creates_topics=creates_topics,
                **keywords,
            )
        )

    def run(self) -> None:
        """Handles records until `stop`, which another thread or a signal handler may call. Raises if an outcome cannot
        be made durable; its record stays uncommitted."""
        self._check_process()
        self._thread.run(self._client.run())

    def stop(self) -> None:
        """Has `run` end after the record that it is at, with everything before it committed."""
        self._client.stop()

    def metrics(self) -> dict[str, float]:
        """Returns the numbers of records handled, retried and dead since the start."""
        return self._client.metrics()
