"""Logs how many records were not delivered when a producer is collected, or when the interpreter exits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any
from weakref import finalize

from strandline.client.producer.batch import ProducerBatch

logger = logging.getLogger("strandline.client.producer")


def tell_unsent(
    producer: object, batches: Iterable[ProducerBatch], queued_count: Callable[[], int] = lambda: 0
) -> finalize[[Any, Any], Any]:
    """Has undelivered records logged when nobody can deliver them any more. Call `detach` on the result where they are
    reported in another way. `batches` are those of the accumulator, without a reference that would keep the producer
    alive; `queued_count` returns the number of records that are not in a batch yet."""
    return finalize(producer, _tell, batches, queued_count)


def _tell(batches: Iterable[ProducerBatch], queued_count: Callable[[], int]) -> None:
    incomplete = [batch for batch in batches if batch.outcome is None and batch.split is None]
    count = queued_count() + sum(batch.count or len(batch.records) for batch in incomplete)
    if count:
        records = "1 record that was" if count == 1 else f"{count} records that were"
        logger.error(
            "a producer is gone with %s not acknowledged: close it, or use `with`, so that they are delivered",
            records,
        )
