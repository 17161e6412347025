"""Members of groups on raw sockets, so that the broker is measured and not a client library.

Each member has its own connection, as a real one has. Classic members join, assign by range, sync, look up their
offsets and fetch. Consumers of KIP-848 send the next heartbeat as soon as they have the response to the last one.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.rpc.channel import response_class
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.codec import decode, decode_from, encode, encode_into
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.records.consumer_protocol import ConsumerProtocolAssignment
from strandline.wire.schema import Request
from tests.group_requests import (
    assignment,
    consumer_heartbeat,
    consumer_join,
    fetch_offsets,
    fitted,
    heartbeat,
    join,
    leave,
    owned,
    subscription,
    sync,
)

HEARTBEAT_S = 0.05
SESSION_MS = 30_000
_FETCH_VERSION = 12


def frame_of(request: Request, version: int, client_id: str = "bench") -> bytes:
    header = RequestHeader(
        request_api_key=request.API_KEY, request_api_version=version, correlation_id=1, client_id=client_id
    )
    frame = encode(header, request_header_version(request.FLEXIBLE, version))
    encode_into(request, version, frame)
    return struct.pack(">i", len(frame)) + bytes(frame)


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, bootstrap: str) -> Connection:
        host, _, port = bootstrap.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=1 << 24))

    async def call(self, request: Request, version: int) -> Any:
        self._writer.write(frame_of(fitted(request, version), version))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        data = await self._reader.readexactly(size)
        header_version = response_header_version(request.API_KEY, request.FLEXIBLE, version)
        _, position = decode_from(ResponseHeader, header_version, data, 0)
        return decode(response_class(type(request)), version, data, position)

    def close(self) -> None:
        self._writer.close()


class ClassicMember:
    def __init__(self, bootstrap: str, group: str, topic: str, partitions: int) -> None:
        self._bootstrap, self._group, self._topic, self._partitions = bootstrap, group, topic, partitions
        self.member_id = ""
        self.generation = -1
        self.held: tuple[int, ...] = ()
        self.leads = False
        self.first_record_s: float | None = None

    async def connect(self) -> None:
        self.connection = await Connection.open(self._bootstrap)
        while True:
            found = await self.connection.call(FindCoordinatorRequest(coordinator_keys=(self._group,)), 4)
            if found.coordinators[0].error_code == ErrorCode.NONE:
                return
            await asyncio.sleep(0.01)

    async def join(self) -> None:
        """Joins, and returns when this member has its assignment in a generation."""
        while True:
            answer = await self.connection.call(
                join(
                    self._group,
                    self.member_id,
                    protocols={"range": subscription(self._topic)},
                    session_ms=SESSION_MS,
                    rebalance_ms=SESSION_MS,
                ),
                9,
            )
            self.member_id = answer.member_id
            if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await asyncio.sleep(0.01)
            if answer.error_code != ErrorCode.NONE:
                continue
            self.generation = answer.generation_id
            self.leads = answer.leader == answer.member_id
            shares = self._shares(answer) if self.leads else {}
            synced = await self.connection.call(sync(self._group, self.member_id, self.generation, shares), 5)
            if synced.error_code == ErrorCode.NONE:
                break
        told = decode(ConsumerProtocolAssignment, 1, synced.assignment, 2).assigned_partitions
        self.held = tuple(p for topic in told for p in topic.partitions)

    def _shares(self, answer: Any) -> dict[str, bytes]:
        members = sorted(member.member_id for member in answer.members)
        share, extra = divmod(self._partitions, len(members))
        shares, start = {}, 0
        for number, member in enumerate(members):
            size = share + (1 if number < extra else 0)
            shares[member] = assignment({self._topic: range(start, start + size)})
            start += size
        return shares

    async def read_one(self) -> None:
        """Looks up the committed offset and fetches from there."""
        await self.connection.call(fetch_offsets(self._group, partitions=self.held, topic=self._topic), 9)
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=0,
            session_epoch=-1,
            topics=(
                FetchTopic(
                    topic=self._topic,
                    partitions=tuple(
                        FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=1 << 16)
                        for p in self.held
                    ),
                ),
            ),
        )
        answer = await self.connection.call(request, _FETCH_VERSION)
        assert any(p.records for topic in answer.responses for p in topic.partitions), "no record"
        self.first_record_s = time.perf_counter()

    async def is_settled(self) -> bool:
        beat = heartbeat(self._group, self.member_id, self.generation)
        return bool((await self.connection.call(beat, 4)).error_code == ErrorCode.NONE)

    async def follow(self) -> None:
        """Sends heartbeats until the response asks for a rejoin, and rejoins."""
        while await self.is_settled():
            pass
        await self.join()

    async def run(self) -> None:
        """Joins, reads its first record, and rejoins when a heartbeat says so, until it is cancelled."""
        await self.connect()
        while True:
            await self.join()
            if self.first_record_s is None and self.held:
                await self.read_one()
            while await self.is_settled():
                await asyncio.sleep(HEARTBEAT_S)

    async def leave(self) -> None:
        await self.connection.call(leave(self._group, self.member_id), 5)
        self.connection.close()


class ConsumerMember:
    """A member of the consumer protocol that carries out its assignment at once."""

    def __init__(self, bootstrap: str, group: str, name: str, topic: str) -> None:
        self._bootstrap, self._group, self._topic = bootstrap, group, topic
        self.member_id = name
        self.epoch = 0
        self._held: dict[bytes, tuple[int, ...]] = {}

    @property
    def held(self) -> int:
        return sum(map(len, self._held.values()))

    async def connect(self) -> None:
        self.connection = await Connection.open(self._bootstrap)
        await self.connection.call(FindCoordinatorRequest(coordinator_keys=(self._group,)), 4)

    async def join(self) -> None:
        while True:
            answer = await self.connection.call(consumer_join(self._group, self.member_id, self._topic), 1)
            if self._learn(answer):
                return
            await asyncio.sleep(0.01)

    async def beat(self) -> None:
        report = owned(self._held)
        request = consumer_heartbeat(self._group, self.member_id, self.epoch, topic_partitions=report)
        self._learn(await self.connection.call(request, 1))

    def _learn(self, answer: Any) -> bool:
        if answer.error_code != ErrorCode.NONE:
            return False
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self._held = {t.topic_id: t.partitions for t in answer.assignment.topic_partitions}
        return True

    async def leave(self) -> None:
        await self.connection.call(consumer_heartbeat(self._group, self.member_id, -1), 1)
        self.connection.close()


class Repeater(asyncio.Protocol):
    """Sends one request again and again, with `depth` in flight, and counts the responses."""

    def __init__(self, frame: bytes, depth: int) -> None:
        self._frame = frame
        self._depth = depth
        self._buffer = b""
        self.answers = 0
        self.last = b""
        self.is_going_on = True

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._frame * self._depth)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        position, count = 0, 0
        while len(buffer) - position >= 4:
            size = int.from_bytes(buffer[position : position + 4], "big")
            if len(buffer) - position - 4 < size:
                break
            self.last = buffer[position + 4 : position + 4 + size]
            position += 4 + size
            count += 1
        self._buffer = buffer[position:]
        self.answers += count
        if self.is_going_on and count:
            self._transport.write(self._frame * count)

    def close(self) -> None:
        self._transport.close()
