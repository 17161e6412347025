"""Voters on disk: found again after a restart, in snapshots, and gone with what is truncated."""

from __future__ import annotations

from pathlib import Path

from strandline.broker.metadata.raft_log import RaftLog, render_snapshot, voters_of_snapshot
from strandline.broker.metadata.voter_records import voter_records, voters_in
from strandline.config import TopicConfig
from strandline.node.disk import RealDisk
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey, VotersAppended
from strandline.quorum.voters import Endpoint, Voter, VoterSet
from strandline.storage.files import FileTable
from strandline.wire.records.framing import control_batch, metadata_batch
from strandline.wire.records.metadata import FeatureLevelRecord
from tests.unit.config.settings import running

ENDPOINTS = (Endpoint("CONTROLLER", "here", 9093), Endpoint("SECURE", "::1", 9094))


def voter_set(*ids: int) -> VoterSet:
    return VoterSet.of(
        Voter(key=ReplicaKey(n, bytes([n]) * 16), endpoints=ENDPOINTS, version_max=1) for n in ids
    )


def store_at(path: Path) -> RaftLog:
    disk = RealDisk()
    config = TopicConfig(running().topic_values({}))
    return RaftLog(disk, FileTable(disk, 16), str(path), config, 0)


def append_voters(store: RaftLog, voters: VoterSet, version: int | None = None) -> list[VotersAppended]:
    batch = control_batch(voter_records(voters, version), store.end_offset, 1, 0)
    changes: list[VotersAppended] = []
    store.append(batch, 0, changes)
    return changes


def test_set_is_read_as_it_was_written() -> None:
    batch = control_batch(voter_records(voter_set(1, 2), 1), 7, 1, 0)
    (change,) = voters_in(batch)
    assert (change.offset, change.voters, change.version) == (8, voter_set(1, 2), 1)


def test_appended_sets_are_told_and_found_again(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.append(metadata_batch([FeatureLevelRecord(name="x", feature_level=1)], 0, 1, 0), 0, [])
    assert len(append_voters(store, voter_set(1), 1)) == 1
    append_voters(store, voter_set(1, 2))
    store.close()
    history = store_at(tmp_path).voter_history(VoterSet())
    assert (history.last, history.last_offset, history.version) == (voter_set(1, 2), 3, 1)
    assert history.before_last == voter_set(1)


def test_truncated_set_is_not_found(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    append_voters(store, voter_set(1), 1)
    append_voters(store, voter_set(1, 2))
    store.truncate(2)
    store.close()
    assert store_at(tmp_path).voter_history(VoterSet()).last == voter_set(1)


def test_snapshot_has_the_voters_and_configured_ones_are_in_none(tmp_path: Path) -> None:
    contents = render_snapshot((), 0, 1, 1, voter_set(1, 2))
    assert voters_of_snapshot(contents) == (1, voter_set(1, 2))
    assert voters_of_snapshot(render_snapshot((), 0, 1)) == (0, None)
    store = store_at(tmp_path)
    store.write_snapshot(OffsetAndEpoch(5, 1), contents)
    store.close()
    again = store_at(tmp_path)
    history = again.voter_history(voter_set(3))
    assert (history.last, history.last_offset) == (voter_set(1, 2), 4)
    append_voters(again, voter_set(1))
    assert again.voter_history(voter_set(3)).last == voter_set(1)
