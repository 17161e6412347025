"""Requests to change the voters of the metadata quorum (KIP-853); the core decides their responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from strandline.base.errors import ErrorCode
from strandline.quorum import messages as m
from strandline.quorum.voters import UNKNOWN_DIRECTORY, Endpoint, ReplicaKey, Voter
from strandline.wire.api.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from strandline.wire.api.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from strandline.wire.api.k82_update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

if TYPE_CHECKING:
    from strandline.broker.metadata.raft_node import RaftNode


class VoterListener(Protocol):
    name: str
    host: str
    port: int


def _endpoints(listeners: Iterable[VoterListener]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(each.name, each.host, each.port) for each in listeners)


def _flaw(quorum: RaftNode, cluster_id: str | None, key: ReplicaKey) -> tuple[ErrorCode, str] | None:
    """Returns the error of a request that every node refuses, or None."""
    if cluster_id is not None and cluster_id != quorum.cluster_id:
        return (
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"The request is for cluster {cluster_id}; this is {quorum.cluster_id}.",
        )
    if key.replica_id < 0 or key.directory_id == UNKNOWN_DIRECTORY:
        return ErrorCode.INVALID_REQUEST, "A voter needs an id and the id of its metadata directory."
    return None


def _missing_listener(quorum: RaftNode, endpoints: tuple[Endpoint, ...]) -> tuple[ErrorCode, str] | None:
    name = quorum.addresses.listener_name
    if any(endpoint.listener == name and endpoint.port for endpoint in endpoints):
        return None
    return ErrorCode.INVALID_REQUEST, f"The voter has no endpoint on the controllers' listener {name}."


def _error(response: m.RespondToVoterChange) -> tuple[int, str | None]:
    code = ErrorCode[response.error] if response.error else ErrorCode.NONE
    return code, response.message or None


async def handle_add_voter(quorum: RaftNode, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    endpoints = _endpoints(request.listeners)
    flaw = _flaw(quorum, request.cluster_id, key) or _missing_listener(quorum, endpoints)
    if flaw is not None:
        return AddRaftVoterResponse(throttle_time_ms=0, error_code=flaw[0], error_message=flaw[1])
    response: m.RespondToVoterChange = await quorum.request(
        lambda token: m.AddVoterRequested(
            voter=Voter(key=key, endpoints=endpoints),
            responds_when_committed=request.ack_when_committed,
            token=token,
        )
    )
    code, message = _error(response)
    return AddRaftVoterResponse(throttle_time_ms=0, error_code=code, error_message=message)


async def handle_remove_voter(quorum: RaftNode, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    flaw = _flaw(quorum, request.cluster_id, key)
    if flaw is not None:
        return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=flaw[0], error_message=flaw[1])
    response: m.RespondToVoterChange = await quorum.request(
        lambda token: m.RemoveVoterRequested(key=key, token=token)
    )
    code, message = _error(response)
    return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=code, error_message=message)


async def handle_update_voter(quorum: RaftNode, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    endpoints = _endpoints(request.listeners)
    supported = request.k_raft_version_feature
    flaw = _flaw(quorum, request.cluster_id, key) or _missing_listener(quorum, endpoints)
    code = ErrorCode.NONE if flaw is None else flaw[0]
    if flaw is None:
        response: m.RespondToVoterChange = await quorum.request(
            lambda token: m.UpdateVoterRequested(
                voter=Voter(
                    key=key,
                    endpoints=endpoints,
                    version_min=supported.min_supported_version,
                    version_max=supported.max_supported_version,
                ),
                epoch=request.current_leader_epoch,
                token=token,
            )
        )
        code = ErrorCode(_error(response)[0])
    return UpdateRaftVoterResponse(
        throttle_time_ms=0, error_code=code, current_leader=_current_leader(quorum)
    )


def _current_leader(quorum: RaftNode) -> CurrentLeader:
    host, port = quorum.leader_address or ("", 0)
    return CurrentLeader(leader_id=quorum.leader_id, leader_epoch=quorum.core.epoch, host=host, port=port)
