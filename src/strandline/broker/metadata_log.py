"""The metadata log of a node that is its own quorum, and the runtime that gives the controller its log.

Rules:
1. A plan's records are one batch. They are applied to the controller's image when they are appended, so that the next
   plan sees them, and to the broker's image when they are committed.
2. Committed means synced: the answer to a plan is given only then. Plans that arrive during a sync share the next one.
3. If a sync fails the node halts: what is on the device is unknown, and going on could contradict an answer. A full
   disk is no such failure: the plan is refused and nothing has changed.
4. Every start is a new epoch, noted in `quorum-state` before anything is appended in it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from strandline.base.producer_entry import ProducerEntry
from strandline.broker.replicas import is_full
from strandline.config import TopicConfig
from strandline.controller.controller import Controller
from strandline.controller.plans import Planned
from strandline.ports.clock import Clock
from strandline.ports.disk import Disk
from strandline.ports.process import Process
from strandline.ports.workers import Workers
from strandline.storage import checkpoints, names
from strandline.storage.files import FileTable
from strandline.storage.log import Log
from strandline.storage.opening import Opening, open_log
from strandline.wire.codec import encode
from strandline.wire.record_batch import BatchHeader, read_header, records_in
from strandline.wire.records.control import (
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
)
from strandline.wire.records.framing import (
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    control_batch,
    decode_metadata_record,
    metadata_batch,
)
from strandline.wire.schema import Message

PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
_QUORUM_STATE: Final = "quorum-state"

R = TypeVar("R")


class _NoProducers:
    """The metadata log has no producers."""

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        pass

    def replay(self, header: BatchHeader, batch: bytes | None) -> None:
        pass

    def entries(self) -> list[ProducerEntry]:
        return []


def render_bootstrap(records: Iterable[Message], now_ms: int) -> bytes:
    """The file that tells a new cluster with which records its metadata log begins."""
    header = encode(SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0), 0)
    footer = encode(SnapshotFooterRecord(version=0), 0)
    messages = tuple(records)
    return (
        control_batch(SNAPSHOT_HEADER, bytes(header), 0, 0, now_ms)
        + metadata_batch(messages, 1, 0, now_ms)
        + control_batch(SNAPSHOT_FOOTER, bytes(footer), 1 + len(messages), 0, now_ms)
    )


class MetadataLog:
    def __init__(
        self,
        *,
        disk: Disk,
        files: FileTable,
        workers: Workers,
        clock: Clock,
        process: Process,
        directory: str,
        directory_id: bytes,
        node_id: int,
        config: TopicConfig,
        controller: Controller,
        on_committed: Callable[[Message], None],
        on_published: Callable[[], None],
    ) -> None:
        self._disk = disk
        self._workers = workers
        self._clock = clock
        self._process = process
        self._directory_id = directory_id
        self._node_id = node_id
        self._controller = controller
        self._on_committed = on_committed
        self._on_published = on_published
        self._path = f"{directory}/{names.partition_directory(PARTITION)}"
        self._waiting: deque[tuple[int, tuple[Message, ...], asyncio.Future[Any], Any]] = deque()
        self._flushing: asyncio.Task[None] | None = None
        if not disk.exists(f"{self._path}/{names.PARTITION_METADATA}"):
            disk.make_directory(self._path)
            disk.write_whole(
                f"{self._path}/{names.PARTITION_METADATA}",
                checkpoints.render_partition_metadata(METADATA_TOPIC_ID),
            )
        # Everything answered was synced, so the whole log is read and checked at each start.
        opening = Opening(
            directory=self._path,
            is_clean=False,
            recovery_point=0,
            start_offset=0,
            index_interval_bytes=config.index_interval_bytes,
            new_producers=_NoProducers,
        )
        opened = open_log(disk, opening)
        self.notes = opened.notes
        self._log = Log(disk, files, self._path, PARTITION, config, opened, 0, clock.wall_ms())
        self.epoch = self._begin_epoch()

    @property
    def next_offset(self) -> int:
        return self._log.log_end_offset

    def replay(self) -> int:
        """Applies what is in the log; the number of records."""
        count = 0
        for segment, place in self._log.places(0):
            batch = segment.read_batch(place)
            if read_header(batch).is_control:
                continue
            for record in records_in(batch):
                message = decode_metadata_record(record.value or b"")
                if message is not None:
                    self._controller.apply(message)
                    self._on_committed(message)
                    count += 1
        self._on_published()
        return count

    def _begin_epoch(self) -> int:
        path = f"{self._path}/{_QUORUM_STATE}"
        last = self._log.epochs.latest_epoch
        if self._disk.exists(path):
            try:
                last = max(last, int(json.loads(self._disk.read(path))["leaderEpoch"]))
            except (ValueError, KeyError, TypeError) as error:
                # Alone in its quorum the node has promised its vote to nobody.
                self.notes = (*self.notes, f"{path}: {error!r}; the epoch follows the log's")
        epoch = last + 1
        state = {
            "leaderId": self._node_id,
            "leaderEpoch": epoch,
            "votedId": -1,
            "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
            "data_version": 1,
        }
        self._disk.write_whole(path, json.dumps(state, separators=(",", ":")).encode())
        return epoch

    def announce_leader(self) -> None:
        """The control record with which a leader begins its epoch (KIP-595)."""
        voter = Voter(voter_id=self._node_id)
        message = LeaderChangeMessage(
            version=0, leader_id=self._node_id, voters=(voter,), granting_voters=(voter,)
        )
        self._append(
            control_batch(
                LEADER_CHANGE, bytes(encode(message, 0)), self.next_offset, self.epoch, self._clock.wall_ms()
            )
        )

    async def commit(self, planned: Planned[R]) -> R:
        """Appends the plan's records and gives its response once they are committed."""
        if not planned.records:
            return planned.response
        self._append(metadata_batch(planned.records, self.next_offset, self.epoch, self._clock.wall_ms()))
        for record in planned.records:
            self._controller.apply(record)
        committed: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((self.next_offset, planned.records, committed, planned.response))
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())
        return await committed

    async def commit_records(self, records: tuple[Message, ...]) -> None:
        await self.commit(Planned(records=records, response=None))

    def _append(self, batch: bytes) -> None:
        try:
            self._log.append_replicated(batch, read_header(batch), self._clock.wall_ms())
        except OSError as error:
            if is_full(error):
                # It has been cut back, so nothing has happened.
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"No room is left in {self._path}."
                ) from error
            self._process.halt(f"the metadata log cannot be written: {error}")

    async def _flush(self) -> None:
        while self._waiting:
            work = self._log.flush_work()
            try:
                await self._workers.run(work.run, self._disk)
            except OSError as error:
                self._process.halt(f"the metadata log cannot be synced: {error}")
            self._log.flushed(work.end_offset)
            while self._waiting and self._waiting[0][0] <= work.end_offset:
                _, records, committed, response = self._waiting.popleft()
                for record in records:
                    self._on_committed(record)
                self._on_published()
                if not committed.done():
                    committed.set_result(response)
        self._flushing = None

    async def close(self) -> None:
        if self._flushing is not None:
            await self._flushing
        await self._workers.run(self._log.flush_work().run, self._disk)
        self._log.close()
