"""The idempotent producer: its id and epoch, and whether a queue may send under them now.

It requests an id from any broker when it first needs one, and begins new epochs by itself. The transactional
producer (`transactions`) gets its id and epoch from its coordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.base.errors import ErrorCode
from strandline.base.ids import ProducerIdAndEpoch
from strandline.client.errors import KafkaError, error_for
from strandline.client.net.cluster import ClusterClient
from strandline.client.producer import sequences
from strandline.client.producer.batch import PartitionQueue
from strandline.client.producer.sequences import NO_PRODUCER_ID
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_INT_MAX = (1 << 31) - 1


class Idempotence:
    """The id and epoch of a producer, and the queues that wait for a new one."""

    is_transactional = False
    is_transaction_v2 = False
    transactional_id: str | None = None

    def __init__(self, cluster: ClusterClient, on_fatal: Callable[[KafkaError], None]) -> None:
        """`on_fatal` is called with an error after which this producer cannot send."""
        self._cluster = cluster
        self._on_fatal = on_fatal
        self._id_and_epoch = NO_PRODUCER_ID
        self._request_task: asyncio.Task[None] | None = None
        self._fatal: KafkaError | None = None  # the refusal of an id for good
        self._blocked: dict[PartitionQueue, None] = {}
        self.on_change: Callable[[], None] = lambda: None

    @property
    def current(self) -> ProducerIdAndEpoch:
        return self._id_and_epoch

    @property
    def may_retry(self) -> bool:
        """True if a batch that failed may be sent again; not in a transaction that will be aborted."""
        return True

    def has_producer_id(self) -> bool:
        return self._id_and_epoch.producer_id >= 0

    def may_send(self, queue: PartitionQueue) -> bool:
        """Returns True if the first waiting batch may be sent; remembers a queue that must wait for a new id or
        epoch."""
        sequences.apply_rewind(queue)
        if sequences.needs_new_epoch(queue) and not self._begin_epoch(queue):
            self._blocked[queue] = None
            return False
        sequences.adopt(queue, self._id_and_epoch)
        return sequences.may_send(queue)

    def take_blocked(self) -> list[PartitionQueue]:
        """Returns the queues to look at again, after `on_change`."""
        blocked, self._blocked = self._blocked, {}
        return list(blocked)

    def request_in_background(self) -> None:
        if self._request_task is None and self._fatal is None:
            self._request_task = asyncio.get_running_loop().create_task(self._request_producer_id())

    def fence(self, error: KafkaError) -> None:
        self._on_fatal(error)

    def batch_failed(self, error: KafkaError) -> None:
        """Notes that a batch failed; a transaction can only be aborted then."""

    async def close(self) -> None:
        if self._request_task is not None:
            self._request_task.cancel()

    def _begin_epoch(self, queue: PartitionQueue) -> bool:
        if (queue.producer_id, queue.producer_epoch) == self._id_and_epoch:
            following = sequences.next_epoch(self._id_and_epoch)
            if following is None:
                self._id_and_epoch = NO_PRODUCER_ID
                self.request_in_background()
                return False
            self._id_and_epoch = following
        sequences.begin_epoch(queue, self._id_and_epoch)
        return True

    async def _request_producer_id(self) -> None:
        """Requests an id from brokers until one gives it, or refuses it for good: then no other is requested."""
        pause = self._cluster.backoff()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_INT_MAX)
        while self._id_and_epoch is NO_PRODUCER_ID:
            try:
                response = await self._cluster.call_any(request, InitProducerIdResponse)
                if response.error_code != ErrorCode.NONE:
                    raise error_for(response.error_code, "no producer id was given")
                self._id_and_epoch = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            except KafkaError as error:
                if not error.retriable:
                    self._fatal = error
                    self._on_fatal(error)
                    break
                await asyncio.sleep(pause.failed())
        self._request_task = None
        self.on_change()
