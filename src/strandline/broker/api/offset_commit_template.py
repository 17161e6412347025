"""The template by which a consumer's next OffsetCommit is read without decoding it.

A consumer commits the same partitions again and again: two such requests differ only in the offsets and their leader
epochs, which have fixed places. A request that came twice in a row becomes a template of its connection, which reads
the next one in a single step and has its response. A request that does not fit the template is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from struct import Struct
from typing import Final

from strandline.base.buffers import Buffer
from strandline.base.tuples import new_tuple
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.groups.committed_offset import OffsetChanges
from strandline.telemetry.request_metrics import RequestTimes
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.codec import encode
from strandline.wire.error_codes import error_codes
from strandline.wire.records.offset_commits import POSITION

# From this version on a leader epoch follows each offset.
_EPOCHS_FROM: Final = 6
_PARTITIONS_MAX: Final = 1000


class CommitRequest:
    """A request without its offsets: its committer, and the partitions."""

    __slots__ = (
        "_times",
        "_written",
        "committer",
        "group_id",
        "retention_ms",
        "topics",
        "version",
    )

    def __init__(self, version: int, request: OffsetCommitRequest, times: RequestTimes) -> None:
        self.version = version
        self._times = times
        self.group_id = request.group_id
        # The arguments of `OffsetRequests.check_commit`.
        self.committer = (
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
        )
        self.retention_ms = request.retention_time_ms
        self.topics = request.topics
        self._written: bytes | None = None

    def shape(self, changes: Sequence[OffsetChanges]) -> tuple[object, ...]:
        """Returns the key that requests of one template have in common."""
        return (
            self.version,
            self.committer,
            *[(each.topic_id, each.partitions, each.notes) for each in changes],
        )

    def all_written(self) -> bytes:
        """Returns the response without errors."""
        if self._written is None:
            self._written = self.response(repeat(0))
        return self._written

    def response(self, codes: Iterable[int]) -> bytes:
        """Returns the response; `codes` has an error code for each partition, in the request's order."""
        following = iter(codes)
        topics = tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=next(following)
                    )
                    for each in topic.partitions
                ),
            )
            for topic in self.topics
        )
        response = OffsetCommitResponse(topics=topics)
        for code in error_codes(response):
            self._times.add_error(code)
        return bytes(encode(response, self.version))


class CommitTemplate:
    __slots__ = ("_constants", "_image_version", "_layout", "_topics", "request", "runtime")

    def __init__(
        self,
        request: CommitRequest,
        message: OffsetCommitRequest,
        changes: Sequence[OffsetChanges],
        runtime: GroupRuntime,
        image_version: int,
    ) -> None:
        """`changes` are those of the request, whose partitions all exist in this version of the image; `runtime` is its
        group's."""
        self.request = request
        self.runtime = runtime
        self._topics = tuple((each.topic, each.topic_id, each.partitions, each.notes) for each in changes)
        self._image_version = image_version
        zeros = bytes(encode(with_offsets(message, repeat((0, 0))), request.version))
        ones = bytes(encode(with_offsets(message, repeat((-1, -1))), request.version))
        # The two requests differ in every byte of offsets and epochs, and nowhere else.
        differing = [place for place, (low, high) in enumerate(zip(zeros, ones, strict=True)) if low != high]
        starts = differing[:: POSITION.size]
        assert len(starts) == sum(len(each.partitions) for each in changes)
        self._constants: tuple[bytes, ...] = ()
        layout = ">"
        position = 0
        for start in [*starts, len(zeros)]:
            self._constants += (zeros[position:start],)
            layout += f"{start - position}s{POSITION.size}s"
            position = start + POSITION.size
        self._layout = Struct(layout.removesuffix(f"{POSITION.size}s"))
        assert self._layout.size == len(zeros)

    @classmethod
    def fits(cls, request: CommitRequest, changes: Sequence[OffsetChanges]) -> bool:
        return (
            request.version >= _EPOCHS_FROM
            and len(changes) == len(request.topics)
            and 0 < sum(len(each.partitions) for each in changes) <= _PARTITIONS_MAX
        )

    def read(
        self, version: int, body: Buffer, position: int, image_version: int, now_ms: int
    ) -> list[OffsetChanges] | None:
        """Returns the offsets that the request commits; None if the request has another shape."""
        layout = self._layout
        if (
            len(body) - position != layout.size
            or version != self.request.version
            or image_version != self._image_version
            or self.runtime.is_stopped
        ):
            return None
        found = layout.unpack_from(body, position)
        if found[0::2] != self._constants:
            return None
        positions = found[1::2]
        group_id = self.request.group_id
        if len(self._topics) == 1:
            ((topic, topic_id, partitions, notes),) = self._topics
            return [
                new_tuple(OffsetChanges, (group_id, topic, topic_id, partitions, positions, notes, now_ms))
            ]
        changes: list[OffsetChanges] = []
        first = 0
        for topic, topic_id, partitions, notes in self._topics:
            end = first + len(partitions)
            mine = positions[first:end]
            changes.append(OffsetChanges(group_id, topic, topic_id, partitions, mine, notes, now_ms))
            first = end
        return changes


def with_offsets(request: OffsetCommitRequest, positions: Iterator[tuple[int, int]]) -> OffsetCommitRequest:
    """Returns the same request with other offsets and leader epochs."""

    def moved(partition: OffsetCommitRequestPartition) -> OffsetCommitRequestPartition:
        offset, leader_epoch = next(positions)
        return OffsetCommitRequestPartition(
            partition_index=partition.partition_index,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=partition.committed_metadata,
        )

    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=tuple(map(moved, topic.partitions))
        )
        for topic in request.topics
    )
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )
