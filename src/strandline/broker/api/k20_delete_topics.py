"""DeleteTopics (key 20), versions 1 to 6: deletes topics by name or, from version 6, by id.

The controller decides; the answer is given once it is synced.
Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, TOPIC_DELETION_DISABLED, INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.connection import RequestContext
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DeleteTopicsRequest


async def handle(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, DeleteTopicsResponse)
    return response
