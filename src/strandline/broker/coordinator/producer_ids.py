"""Assigns producer ids from a block of the controller, and requests the next block when it is used up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.node_context import NodeContext
from strandline.wire.api.k67_allocate_producer_ids import AllocateProducerIdsRequest

# Later requests of the same connection wait too; a client that gets a retriable error tries again.
_WAIT_S: Final = 0.5


class ProducerIds:
    def __init__(
        self, node: NodeContext, channel: ControllerChannel, broker_epoch: Callable[[], int]
    ) -> None:
        self._node = node
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._next = 0
        self._end = 0
        self._refill: asyncio.Task[KafkaError | None] | None = None

    async def next(self) -> int:
        """Returns a new producer id; raises COORDINATOR_LOAD_IN_PROGRESS, as Kafka does, while no controller assigns a
        block."""
        while self._next == self._end:
            if self._refill is None:
                self._refill = self._node.tasks.start(self._allocate_block())
            failure = await asyncio.shield(self._refill)
            if failure is not None:
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "No controller assigns producer ids at the moment. Try again.",
                )
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _allocate_block(self) -> KafkaError | None:
        request = AllocateProducerIdsRequest(broker_id=self._node.node_id, broker_epoch=self._broker_epoch())
        try:
            response = await self._channel.call(request, 0, _WAIT_S)
            if response.error_code != ErrorCode.NONE:
                raise KafkaError(response.error_code)
            self._next = response.producer_id_start
            self._end = response.producer_id_start + response.producer_id_len
            return None
        except KafkaError as error:
            self._node.events.warn("no producer ids", error=error)
            return error
        finally:
            self._refill = None
