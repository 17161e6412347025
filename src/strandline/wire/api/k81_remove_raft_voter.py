"""RemoveRaftVoter (key 81), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, field, int16, int32, string, uuid


class RemoveRaftVoterRequest(Request, key=81, versions="0", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    voter_id: int = field(int32)
    voter_directory_id: bytes = field(uuid)


class RemoveRaftVoterResponse(Response, key=81, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
