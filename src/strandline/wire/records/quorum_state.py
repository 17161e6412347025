"""The quorum-state file of a voter."""

from __future__ import annotations

from strandline.wire.schema import ZERO_UUID, Message, Struct, array, field, int32, int64, string, uuid


class Voter(Struct):
    voter_id: int = field(int32, "0", default=0)


class QuorumStateData(Message, versions="0-1", flexible="0+"):
    cluster_id: str = field(string, "0", default="")
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)
    voted_id: int = field(int32, default=-1)
    voted_directory_id: bytes = field(uuid, "1+", default=ZERO_UUID)
    applied_offset: int = field(int64, "0", default=0)
    current_voters: tuple[Voter, ...] | None = field(array(Voter), "0", nullable="0", default=())
