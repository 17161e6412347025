"""CreatePartitions (key 37), versions 0 to 3: adds partitions to topics.

The controller decides; the answer is given once it is synced.
Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.connection import RequestContext
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = CreatePartitionsRequest


async def handle(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, CreatePartitionsResponse)
    return response
