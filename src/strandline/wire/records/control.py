"""The contents of control records."""

from __future__ import annotations

from typing import Final

from strandline.wire.schema import (
    ZERO_UUID,
    Message,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
    uuid,
)

# Apache Kafka's readers read every leader change as version 0, without looking at the record's version.
LEADER_CHANGE_VERSION: Final = 0


class Voter(Struct):
    voter_id: int = field(int32)
    voter_directory_id: bytes = field(uuid, "1+", default=ZERO_UUID)


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    version: int = field(int16)
    leader_id: int = field(int32)
    voters: tuple[Voter, ...] = field(array(Voter))
    granting_voters: tuple[Voter, ...] = field(array(Voter))


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)
    last_contained_log_timestamp: int = field(int64)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)
    k_raft_version: int = field(int16)


class Endpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class KRaftVersionFeature(Struct):
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class VoterData(Struct):
    voter_id: int = field(int32)
    voter_directory_id: bytes = field(uuid)
    endpoints: tuple[Endpoint, ...] = field(array(Endpoint))
    k_raft_version_feature: KRaftVersionFeature = field(struct(KRaftVersionFeature))


class VotersRecord(Message, versions="0", flexible="0+"):
    version: int = field(int16)
    voters: tuple[VoterData, ...] = field(array(VoterData))


class EndTxnMarker(Message, versions="0"):
    coordinator_epoch: int = field(int32)
