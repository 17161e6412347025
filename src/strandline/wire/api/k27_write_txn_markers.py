"""WriteTxnMarkers (key 27), versions 1 to 2, flexible from 1."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
)


class WritableTxnMarkerTopic(Struct):
    name: str = field(string)
    partition_indexes: tuple[int, ...] = field(array(int32))


class WritableTxnMarker(Struct):
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    transaction_result: bool = field(boolean)
    topics: tuple[WritableTxnMarkerTopic, ...] = field(array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(int32)
    transaction_version: int = field(int8, "2+", default=0, ignorable=True)


class WriteTxnMarkersRequest(Request, key=27, versions="1-2", flexible="1+"):
    markers: tuple[WritableTxnMarker, ...] = field(array(WritableTxnMarker))


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class WritableTxnMarkerTopicResult(Struct):
    name: str = field(string)
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = field(array(WritableTxnMarkerPartitionResult))


class WritableTxnMarkerResult(Struct):
    producer_id: int = field(int64)
    topics: tuple[WritableTxnMarkerTopicResult, ...] = field(array(WritableTxnMarkerTopicResult))


class WriteTxnMarkersResponse(Response, key=27, versions="1-2", flexible="1+"):
    markers: tuple[WritableTxnMarkerResult, ...] = field(array(WritableTxnMarkerResult))
