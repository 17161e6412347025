"""The metadata log, its snapshots and the quorum's election state, on disk.

Appends go to the page cache at once, and are durable when `sync` has run in a worker. A snapshot is a file `<end
offset>-<epoch>.checkpoint` with the records that make up the image at that offset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition, parse_uuid, uuid_text
from strandline.base.producer_entry import ProducerEntry
from strandline.broker.metadata.voter_records import voter_records, voters_in
from strandline.config import TopicConfig
from strandline.ports.disk import Disk
from strandline.quorum.epochs import EPOCH_MAX, is_behind, last_epoch
from strandline.quorum.messages import Election, LogSynced, OffsetAndEpoch, ReplicaKey, VotersAppended
from strandline.quorum.voters import STATIC_VERSION, VoterHistory, VoterSet
from strandline.storage import checkpoints, names
from strandline.storage.directory import UnusableDirectory
from strandline.storage.files import FileTable
from strandline.storage.flushing import FlushWork
from strandline.storage.log import Log
from strandline.storage.log_loader import LoadRequest, load_log
from strandline.storage.segment import Slice
from strandline.wire.codec import encode
from strandline.wire.record_batch import BatchHeader, headers_in, read_header, records_in
from strandline.wire.records.control import SnapshotFooterRecord, SnapshotHeaderRecord
from strandline.wire.records.framing import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    control_batch,
    decode_metadata_record,
    metadata_batch,
)
from strandline.wire.schema import Message

PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
QUORUM_STATE: Final = "quorum-state"
_SNAPSHOT_SUFFIX: Final = ".checkpoint"
RESET_ADVICE: Final = (
    "stop all nodes of the cluster, run `strandline quorum reset-epoch` on the data directory of each of them, and "
    "start them again"
)
_RECORDS_PER_BATCH: Final = 500


class _NoProducers:
    """The producer table of the metadata log, which has no producers."""

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        pass

    def replay(self, header: BatchHeader, batch: bytes | None) -> None:
        pass

    def entries(self) -> list[ProducerEntry]:
        return []

    def snapshot(self) -> list[ProducerEntry]:
        return []

    def __len__(self) -> int:
        return 0


def render_snapshot(
    records: Iterable[Message],
    last_timestamp: int,
    epoch: int,
    version: int = STATIC_VERSION,
    voters: VoterSet | None = None,
) -> bytes:
    """Returns the contents of a snapshot file, or of the bootstrap file of a new cluster."""
    header = encode(SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp), 0)
    footer = encode(SnapshotFooterRecord(version=0), 0)
    first = [(SNAPSHOT_HEADER, bytes(header))]
    if voters is not None:
        first += voter_records(voters, version)
    parts = [control_batch(first, 0, epoch, last_timestamp)]
    messages = list(records)
    offset = len(first)
    for start in range(0, len(messages), _RECORDS_PER_BATCH):
        chunk = messages[start : start + _RECORDS_PER_BATCH]
        parts.append(metadata_batch(chunk, offset, epoch, last_timestamp))
        offset += len(chunk)
    parts.append(control_batch([(SNAPSHOT_FOOTER, bytes(footer))], offset, epoch, last_timestamp))
    return b"".join(parts)


def voters_of_snapshot(data: bytes) -> tuple[int, VoterSet | None]:
    """Returns the level of kraft.version and the set of voters in a snapshot, which is None if voters are
    configured."""
    for change in voters_in(data):
        return change.version or STATIC_VERSION, change.voters
    return STATIC_VERSION, None


def records_of_snapshot(data: bytes) -> Iterator[Message]:
    for position, header in headers_in(data):
        if not header.is_control:
            yield from _messages(data[position : position + header.size])


def _messages(batch: bytes) -> Iterator[Message]:
    for record in records_in(batch):
        yield decode_metadata_record(record.value or b"")


class RaftLog:
    def __init__(
        self,
        disk: Disk,
        files: FileTable,
        directory: str,
        config: TopicConfig,
        now_ms: int,
        *,
        is_alone: bool = False,
    ) -> None:
        self._disk = disk
        self._files = files
        self._path = f"{directory}/{names.partition_directory(PARTITION)}"
        if not disk.exists(f"{self._path}/{names.PARTITION_METADATA}"):
            disk.make_directory(self._path)
            disk.write_whole(
                f"{self._path}/{names.PARTITION_METADATA}",
                checkpoints.render_partition_metadata(METADATA_TOPIC_ID),
            )
        self.snapshot = self._newest_snapshot()
        # Acknowledged records were synced; the part after them is checked at each start.
        opening = LoadRequest(
            directory=self._path,
            is_clean=False,
            recovery_point=0,
            start_offset=self.snapshot.offset if self.snapshot is not None else 0,
            index_interval_bytes=config.index_interval_bytes,
            new_producers=_NoProducers,
        )
        opened = load_log(disk, opening)
        self.notes = opened.notes
        self._log = Log(disk, files, self._path, PARTITION, config, opened, 0, now_ms)
        if self.snapshot is not None and is_behind(self._last(), self.snapshot):
            self._log.restart_at(self.snapshot.offset)
        self.election = self._read_election(is_alone)
        self.bytes_since_snapshot = self._log.size

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    def _last(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, last_epoch(self.synced().epochs))

    def synced(self, end_offset: int | None = None) -> LogSynced:
        """Returns the state of the log as an event for the quorum."""
        epochs = list(self._log.epochs.entries)
        snapshot = self.snapshot
        if snapshot is not None and (
            not epochs or epochs[0][1] > snapshot.offset or epochs[0][0] > snapshot.epoch
        ):
            # The snapshot's epoch ends with the snapshot, also if the log has no record of it any more.
            epochs.insert(0, (snapshot.epoch, self.start_offset))
        end = self.end_offset if end_offset is None else end_offset
        return LogSynced(
            end_offset=end, epochs=tuple((epoch, start) for epoch, start in epochs if start <= end)
        )

    # Elections

    def _read_election(self, is_alone: bool) -> Election:
        path = f"{self._path}/{QUORUM_STATE}"
        if not self._disk.exists(path):
            return Election(0)
        try:
            state = json.loads(self._disk.read(path))
            voted = None
            if state.get("votedId", -1) >= 0:
                voted = ReplicaKey(state["votedId"], parse_uuid(state.get("votedDirectoryId") or "A" * 22))
            election = Election(int(state["leaderEpoch"]), int(state.get("leaderId", -1)), voted)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if not is_alone:
                # The node may have voted in an epoch that the damaged file had, and must not vote in it again.
                raise UnusableDirectory(
                    f"{path} is damaged: {error!r}; remove this controller and add it again"
                ) from error
            self.notes = (*self.notes, f"{path}: {error!r}; the epoch follows the log's")
            return Election(max(self._log.epochs.latest_epoch, 0))
        if not 0 <= election.epoch <= EPOCH_MAX:
            raise UnusableDirectory(f"{path} has the epoch {election.epoch}, which cannot be: {RESET_ADVICE}")
        return election

    def write_election(self, election: Election) -> None:
        """Writes and syncs the election; it blocks, so it runs in a worker."""
        assert 0 <= election.epoch <= EPOCH_MAX, "no epoch is stored that cannot be sent"
        state = {
            "leaderId": election.leader_id,
            "leaderEpoch": election.epoch,
            "votedId": -1 if election.voted is None else election.voted.replica_id,
            "votedDirectoryId": uuid_text(
                bytes(16) if election.voted is None else election.voted.directory_id
            ),
            "data_version": 1,
        }
        self._disk.write_whole(
            f"{self._path}/{QUORUM_STATE}", json.dumps(state, separators=(",", ":")).encode()
        )

    # The log

    def append(self, records: bytes, now_ms: int, changes: list[VotersAppended]) -> None:
        """Appends batches with their offsets and epochs, unchanged; sets of voters in them are added to `changes`.

        If it fails, some of them may be appended; another call appends the others.
        """
        for position, header in headers_in(records):
            if header.base_offset < self.end_offset:
                continue  # a leader sends whole batches, which may begin before the fetch offset
            batch = records[position : position + header.size]
            self._log.append_replicated(batch, header, now_ms)
            self.bytes_since_snapshot += header.size
            if header.is_control:
                changes += voters_in(batch)

    def voter_history(self, configured: VoterSet) -> VoterHistory:
        """Returns the sets of voters in the latest snapshot and in the log after it."""
        history = VoterHistory(configured)
        if self.snapshot is not None:
            history.restart(self.snapshot.offset - 1, *voters_of_snapshot(self.read_snapshot()))
        for segment, place in self._log.places(self.start_offset):
            for change in voters_in(segment.read_batch(place)):
                if change.offset > history.last_offset:
                    history.append(change.offset, change.voters, change.version)
        return history

    def sync_work(self) -> FlushWork:
        return self._log.flush_work()

    def synced_to(self, end_offset: int) -> None:
        self._log.flushed(end_offset)

    def truncate(self, offset: int) -> None:
        self._log.truncate_to(offset)

    def read(self, offset: int, upper: int, size_max: int) -> Slice | None:
        return self._log.read(offset, upper, size_max, whole_first_batch=True)

    def messages(self, start: int, end: int) -> Iterator[tuple[int, Message | None]]:
        """Yields metadata records of batches that begin in [start, end), each with the offset after its batch."""
        for segment, place in self._log.places(start):
            if place.base_offset >= end:
                return
            if place.last_offset < start:
                continue
            batch = segment.read_batch(place)
            if read_header(batch).is_control:
                yield place.last_offset + 1, None
                continue
            for message in _messages(batch):
                yield place.last_offset + 1, message

    def epoch_at(self, offset: int) -> int:
        return max(self._log.epochs.epoch_at(offset), 0)

    # Snapshots

    def _newest_snapshot(self) -> OffsetAndEpoch | None:
        found = [
            parsed
            for name in self._disk.names(self._path)
            if (parsed := parse_snapshot_name(name)) is not None
        ]
        return max(found) if found else None

    def _snapshot_path(self, snapshot: OffsetAndEpoch) -> str:
        return f"{self._path}/{snapshot_name(snapshot)}"

    def read_snapshot(self) -> bytes:
        assert self.snapshot is not None
        return self._disk.read(self._snapshot_path(self.snapshot))

    def write_snapshot(self, snapshot: OffsetAndEpoch, contents: bytes) -> None:
        """Writes and syncs a snapshot; it blocks, so it runs in a worker. `adopt_snapshot` puts it into use."""
        self._disk.write_whole(self._snapshot_path(snapshot), contents)

    def render_and_write_snapshot(
        self,
        snapshot: OffsetAndEpoch,
        records: list[Message],
        last_timestamp: int,
        version: int,
        voters: VoterSet | None,
    ) -> None:
        """Encodes and writes a snapshot of this node. Encoding the records of a large image takes a while too."""
        contents = render_snapshot(records, last_timestamp, snapshot.epoch, version, voters)
        self.write_snapshot(snapshot, contents)

    def adopt_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Makes this snapshot the latest one: the log before it and older snapshots are removed."""
        older = self.snapshot
        has_left = is_behind(self._last(), snapshot)
        self.snapshot = snapshot
        self.bytes_since_snapshot = 0
        if has_left:
            self._log.restart_at(snapshot.offset)
        else:
            self._log.advance_start(snapshot.offset)
            below = sum(1 for _ in self._log.segments_below(snapshot.offset))
            count = min(below, len(self._log.segments) - 1)
            if count > 0:
                for path in self._log.drop_segments(self._log.segments[:count]):
                    self._disk.remove(path)
        if older is not None and older != snapshot:
            self.remove_snapshot(older)

    def remove_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        self._disk.remove(self._snapshot_path(snapshot))

    def close(self) -> None:
        self._log.close()


def snapshot_name(snapshot: OffsetAndEpoch) -> str:
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}{_SNAPSHOT_SUFFIX}"


def parse_snapshot_name(name: str) -> OffsetAndEpoch | None:
    stem, dot, _ = name.partition(_SNAPSHOT_SUFFIX)
    offset, dash, epoch = stem.partition("-")
    if not dot or not name.endswith(_SNAPSHOT_SUFFIX) or not dash or len(offset) != 20 or len(epoch) != 10:
        return None
    return OffsetAndEpoch(int(offset), int(epoch))
