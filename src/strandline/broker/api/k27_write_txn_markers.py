"""WriteTxnMarkers (key 27), versions 1 and 2: a coordinator, or an admin, ends transactions in partitions led here.

The response comes when the markers are committed. Errors by partition: UNKNOWN_TOPIC_OR_PARTITION,
NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, NOT_ENOUGH_REPLICAS,
NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.broker.api.services import Services
from strandline.broker.coordinator.txn_markers import Ending
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from strandline.wire.records.markers import Marker

REQUEST = WriteTxnMarkersRequest


async def handle(
    services: Services, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    results = [await _write(services, marker) for marker in request.markers]
    return WriteTxnMarkersResponse(markers=tuple(results))


async def _write(services: Services, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    ending = Ending(
        marker.producer_id,
        marker.producer_epoch,
        Marker(marker.transaction_result, marker.coordinator_epoch),
        marker.transaction_version,
    )
    partitions = [TopicPartition(topic.name, i) for topic in marker.topics for i in topic.partition_indexes]
    codes = dict(
        zip(partitions, await services.transactions.markers.write_here(ending, partitions), strict=True)
    )
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in marker.topics
        ),
    )
