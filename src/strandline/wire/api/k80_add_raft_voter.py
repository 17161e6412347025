"""AddRaftVoter (key 80), versions 0 to 1, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class AddRaftVoterRequest(Request, key=80, versions="0-1", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    timeout_ms: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: bytes = field(uuid)
    listeners: tuple[Listener, ...] = field(array(Listener))
    ack_when_committed: bool = field(boolean, "1+", default=True)


class AddRaftVoterResponse(Response, key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
