"""DeleteTopics (key 20), versions 1 to 6, flexible from 4."""

from __future__ import annotations

from strandline.wire.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    array,
    field,
    int16,
    int32,
    string,
    uuid,
)


class DeleteTopicState(Struct):
    name: str | None = field(string, "6+", nullable="6+", default=None)
    topic_id: bytes = field(uuid, "6+", default=ZERO_UUID)


class DeleteTopicsRequest(Request, key=20, versions="1-6", flexible="4+"):
    topics: tuple[DeleteTopicState, ...] = field(array(DeleteTopicState), "6+", default=())
    topic_names: tuple[str, ...] = field(array(string), "0-5", default=(), ignorable=True)
    timeout_ms: int = field(int32)


class DeletableTopicResult(Struct):
    name: str | None = field(string, nullable="6+")
    topic_id: bytes = field(uuid, "6+", default=ZERO_UUID, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, "5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, key=20, versions="1-6", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+")
    responses: tuple[DeletableTopicResult, ...] = field(array(DeletableTopicResult))
