"""Sets of voters as control records of the metadata log (KIP-853), in Kafka's formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from strandline.quorum.messages import ReplicaKey, VotersAppended
from strandline.quorum.voters import Endpoint, Voter, VoterSet
from strandline.wire.codec import decode, encode
from strandline.wire.record_batch import headers_in, records_in
from strandline.wire.records import control
from strandline.wire.records.framing import KRAFT_VERSION, KRAFT_VOTERS, control_kind

_RECORD_VERSION: Final = 0


def voter_records(voters: VoterSet, version: int | None) -> list[tuple[int, bytes]]:
    """Returns kinds and contents of the records: the level of kraft.version unless it is None, and the set of
    voters."""
    records = []
    if version is not None:
        level = control.KRaftVersionRecord(version=_RECORD_VERSION, k_raft_version=version)
        records.append((KRAFT_VERSION, bytes(encode(level, _RECORD_VERSION))))
    members = control.VotersRecord(
        version=_RECORD_VERSION, voters=tuple(_as_data(voter) for voter in voters.voters)
    )
    return [*records, (KRAFT_VOTERS, bytes(encode(members, _RECORD_VERSION)))]


def _as_data(voter: Voter) -> control.VoterData:
    return control.VoterData(
        voter_id=voter.key.replica_id,
        voter_directory_id=voter.key.directory_id,
        endpoints=tuple(
            control.Endpoint(name=each.listener, host=each.host, port=each.port) for each in voter.endpoints
        ),
        k_raft_version_feature=control.KRaftVersionFeature(
            min_supported_version=voter.version_min, max_supported_version=voter.version_max
        ),
    )


def _as_voter(data: control.VoterData) -> Voter:
    return Voter(
        key=ReplicaKey(data.voter_id, data.voter_directory_id),
        endpoints=tuple(Endpoint(each.name, each.host, each.port) for each in data.endpoints),
        version_min=data.k_raft_version_feature.min_supported_version,
        version_max=data.k_raft_version_feature.max_supported_version,
    )


def voters_in(data: bytes) -> Iterator[VotersAppended]:
    """Yields the sets of voters in record batches, each with the level of kraft.version before it, if there is one.

    A node that raises the level writes the voters after it in the same batch, as Kafka does.
    """
    for position, header in headers_in(data):
        if not header.is_control:
            continue
        version = None
        for record in records_in(data[position : position + header.size]):
            kind, content = control_kind(record), record.value or b""
            if kind == KRAFT_VERSION:
                version = decode(control.KRaftVersionRecord, _RECORD_VERSION, content, 0).k_raft_version
            elif kind == KRAFT_VOTERS:
                members = decode(control.VotersRecord, _RECORD_VERSION, content, 0)
                voters = VoterSet.of(_as_voter(each) for each in members.voters)
                yield VotersAppended(offset=record.offset, voters=voters, version=version)
