"""Plan for a block of producer ids: a block that one broker got is never given to another."""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.base.planned import Planned
from strandline.controller.image import ClusterImage
from strandline.wire.records.metadata import ProducerIdsRecord

BLOCK_SIZE: Final = 1000


class ProducerIdBlock(NamedTuple):
    first: int
    size: int


def plan_allocate_producer_ids(
    image: ClusterImage, broker_id: int, broker_epoch: int
) -> Planned[ProducerIdBlock]:
    first = image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return Planned(records=(record,), response=ProducerIdBlock(first, BLOCK_SIZE))
