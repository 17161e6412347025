"""Who the producer is to brokers: its id and epoch, and whether a queue may send under them now.

The idempotent producer asks any broker for an id when it first needs one and begins new epochs by itself. The
transactional one (client.transactions) is told its identity by its coordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.base.errors import ErrorCode
from strandline.client.errors import KafkaError, error_for
from strandline.client.net.cluster import Cluster
from strandline.client.producer import sequences
from strandline.client.producer.batch import PartitionQueue
from strandline.client.producer.sequences import NO_IDENTITY, ProducerIdentity
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_INT_MAX = (1 << 31) - 1


class Identity:
    is_transactional = False
    is_transaction_v2 = False
    transactional_id: str | None = None

    def __init__(self, cluster: Cluster, on_fatal: Callable[[KafkaError], None]) -> None:
        """`on_fatal` is told of an error after which this producer cannot send."""
        self._cluster = cluster
        self._on_fatal = on_fatal
        self._identity = NO_IDENTITY
        self._fetching: asyncio.Task[None] | None = None
        self._fatal: KafkaError | None = None  # why no broker will ever give an id
        self._blocked: dict[PartitionQueue, None] = {}
        self.on_change: Callable[[], None] = lambda: None

    @property
    def current(self) -> ProducerIdentity:
        return self._identity

    @property
    def may_retry(self) -> bool:
        """Whether a batch that failed may be sent again; not in a transaction that will be aborted."""
        return True

    def is_usable(self) -> bool:
        return self._identity.producer_id >= 0

    def may_send(self, queue: PartitionQueue) -> bool:
        """Whether the first waiting batch may go; if it cannot because of the producer, the queue is remembered."""
        sequences.settle(queue)
        if sequences.needs_new_epoch(queue) and not self._begin_epoch(queue):
            self._blocked[queue] = None
            return False
        sequences.adopt(queue, self._identity)
        return sequences.may_send(queue)

    def take_blocked(self) -> list[PartitionQueue]:
        """Queues to look at again, after `on_change`."""
        blocked, self._blocked = self._blocked, {}
        return list(blocked)

    def fetch_in_background(self) -> None:
        if self._fetching is None and self._fatal is None:
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())

    def fence(self, error: KafkaError) -> None:
        self._on_fatal(error)

    def batch_failed(self, error: KafkaError) -> None:
        """A batch was given up; a transaction takes note of that."""

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()

    def _begin_epoch(self, queue: PartitionQueue) -> bool:
        if (queue.producer_id, queue.producer_epoch) == self._identity:
            following = sequences.next_identity(self._identity)
            if following is None:
                self._identity = NO_IDENTITY
                self.fetch_in_background()
                return False
            self._identity = following
        sequences.begin_epoch(queue, self._identity)
        return True

    async def _fetch(self) -> None:
        """Asks brokers for an id until one gives it, or refuses it for good: then nobody is asked again."""
        pause = self._cluster.backoff()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_INT_MAX)
        while self._identity is NO_IDENTITY:
            try:
                answer = await self._cluster.call_any(request, InitProducerIdResponse)
                if answer.error_code != ErrorCode.NONE:
                    raise error_for(answer.error_code, "no producer id was given")
                self._identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            except KafkaError as error:
                if not error.retriable:
                    self._fatal = error
                    self._on_fatal(error)
                    break
                await asyncio.sleep(pause.failed())
        self._fetching = None
        self.on_change()
