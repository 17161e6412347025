"""UpdateRaftVoter (key 82), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    field,
    int16,
    int32,
    string,
    struct,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class KRaftVersionFeature(Struct):
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class UpdateRaftVoterRequest(Request, key=82, versions="0", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    current_leader_epoch: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: bytes = field(uuid)
    listeners: tuple[Listener, ...] = field(array(Listener))
    k_raft_version_feature: KRaftVersionFeature = field(struct(KRaftVersionFeature))


class CurrentLeader(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)
    host: str = field(string)
    port: int = field(int32)


class UpdateRaftVoterResponse(Response, key=82, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    current_leader: CurrentLeader | None = field(struct(CurrentLeader), default=None, tag=0, tagged="0+")
