"""Hands out producer ids from a block that the controller gave; asks for the next block when it is used up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.wire.api.k67_allocate_producer_ids import AllocateProducerIdsRequest

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

# Requests behind this one on its connection wait too; a client that is told to try again does.
_WAIT_S: Final = 0.5


class ProducerIds:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._next = 0
        self._end = 0
        self._refill: asyncio.Task[KafkaError | None] | None = None

    async def next(self) -> int:
        """COORDINATOR_LOAD_IN_PROGRESS, as in Kafka, while no controller gives a block."""
        while self._next == self._end:
            if self._refill is None:
                self._refill = self._broker.tasks.start(self._ask_for_a_block())
            failure = await asyncio.shield(self._refill)
            if failure is not None:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "No controller gives producer ids.")
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _ask_for_a_block(self) -> KafkaError | None:
        broker = self._broker
        request = AllocateProducerIdsRequest(broker_id=broker.node_id, broker_epoch=broker.broker_epoch)
        try:
            response = await broker.controllers.call(request, 0, _WAIT_S)
            if response.error_code != ErrorCode.NONE:
                raise KafkaError(response.error_code)
            self._next = response.producer_id_start
            self._end = response.producer_id_start + response.producer_id_len
            return None
        except KafkaError as error:
            broker.events.warn("no producer ids", error=error)
            return error
        finally:
            self._refill = None
