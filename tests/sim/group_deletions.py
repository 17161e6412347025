"""Groups and offsets that go: because somebody asks for it, because their topic goes, or because their time is over.

1. An offset that nobody asked to delete is there for `offsets.retention.minutes` after its commit, and for as long
   after its group became empty; while somebody subscribes to its topic it stays.
2. A group that has members is not deleted, nor is an offset of a topic that one of them subscribes to.
3. Who is told that something is deleted is told so after that is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.sim.history import Violation
from strandline.wire.api.k42_delete_groups import DeletableGroupResult, DeleteGroupsRequest
from strandline.wire.api.k47_offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from strandline.wire.record_batch import BatchHeader, records_in
from strandline.wire.records import offsets_topic as made
from strandline.wire.records.offsets_framing import decode_entry
from tests.sim.group_calls import Call
from tests.sim.group_records import GroupRecords, Place
from tests.sim.led_partition import Batch, LedPartition


def delete_group(runtime: GroupRuntime, call: Call) -> None:
    """Deletes one group, as the handler of DeleteGroups does."""
    (group_id,) = call.request.groups_names
    result, code = runtime.shard.delete_group(group_id)
    runtime.run(result.respond_to(call, DeletableGroupResult(group_id=group_id, error_code=code)))


def delete_offset(runtime: GroupRuntime, call: Call) -> None:
    """Deletes the offset of one partition, as the handler of OffsetDelete does."""
    (topic,) = call.request.topics
    index = topic.partitions[0].partition_index
    try:
        result, codes = runtime.shard.offset_requests.delete(call.request.group_id, [(topic.name, index)])
    except KafkaError as error:
        call.respond(OffsetDeleteResponse(error_code=error.code, throttle_time_ms=0, topics=()))
        return
    runtime.run(
        result.respond_to(call, OffsetDeleteResponse(error_code=codes[0], throttle_time_ms=0, topics=()))
    )


class DeletionJudge:
    def __init__(
        self, log: LedPartition, group_id: str, retention_s: float, is_alive: Callable[[str], bool]
    ) -> None:
        """`is_alive` says of a member that the coordinator has no reason to have removed it."""
        self._log = log
        self._is_alive = is_alive
        self._group_id = group_id
        self._retention_ms = round(retention_s * 1000)
        self._records = GroupRecords()
        self._empty_since_ms = 0
        self._asked: set[tuple[int, int]] = set()  # batches, by epoch and offset, that somebody asked for

    @contextmanager
    def asked(self, call: Call | None = None) -> Iterator[None]:
        """Wraps a request that deletes: records that are written during it may delete anything."""
        log, start = self._log.replica.log, self._log.replica.log.log_end_offset
        yield
        assert self._log.replica.log is log
        self._asked |= {
            (header.leader_epoch, header.base_offset)
            for header, _ in self._log.batches
            if header.base_offset >= start
        }
        if call is not None:
            call.written_end = log.log_end_offset

    def read(self) -> None:
        """Reads the records that have been committed since the last call."""
        end, batches = self._log.committed_end, self._log.batches
        while self._records.count < len(batches) and batches[self._records.count][0].last_offset < end:
            self._look_at(batches[self._records.count])
            had_members = bool(self._members())
            header = batches[self._records.count][0]
            self._records.read_to(batches, header.next_offset)
            if had_members and not self._members():
                self._empty_since_ms = header.max_timestamp

    def _members(self) -> list[str]:
        classic = self._records.classic.get(self._group_id)
        members = [] if classic is None else [member.member_id for member in classic.members]
        return members + [member_id for _, member_id in self._records.members]

    def _look_at(self, batch: Batch) -> None:
        header, data = batch
        if header.is_control or (header.leader_epoch, header.base_offset) in self._asked:
            return
        for record in records_in(data):
            match decode_entry(record.key or b"", record.value):
                case made.OffsetCommitKey() as key, None:
                    self._check_age((key.group, key.topic, key.partition), header)

    def _check_age(self, place: Place, header: BatchHeader) -> None:
        if living := [member_id for member_id in self._members() if self._is_alive(member_id)]:
            raise Violation("expired-early", f"{place} is gone, and {living} subscribe to its topic")
        since_ms = self._records.committed_ms.get(place, 0)
        if self._group_id in self._records.classic:
            since_ms = max(since_ms, self._empty_since_ms)
        if header.max_timestamp - since_ms < self._retention_ms:
            raise Violation("expired-early", f"{place} is gone after {header.max_timestamp - since_ms} ms")

    def given(self, call: Call, response: Any) -> None:
        """A response to DeleteGroups or to OffsetDelete that says that it is done."""
        assert isinstance(call.request, DeleteGroupsRequest | OffsetDeleteRequest)
        assert response.error_code == ErrorCode.NONE
        if call.inhabitant is not None:
            raise Violation("deleted-in-use", f"{type(call.request).__name__}, and {call.inhabitant} lives")
        if self._log.committed_end < call.written_end:
            raise Violation("told-unwritten", f"{type(call.request).__name__} is not committed")
