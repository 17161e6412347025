"""A minimal consumer, so that one process can run hundreds of them, each with its own connection.

It speaks the classic protocol on raw sockets: joins, lets the leader share partitions out, sends heartbeats, rejoins
when it is told to. Eager members give up everything when they rejoin, cooperative ones only what they have to.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Mapping
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.rpc.channel import response_class
from strandline.wire.codec import decode, decode_from, encode, encode_into
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from strandline.wire.schema import Request
from tests.group_requests import assignment, fitted, heartbeat, join, leave, subscription, sync

HEARTBEAT_S = 0.1
TOPIC = "orders"


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader, self._writer = reader, writer
        self._client_id = client_id
        self._number = 0

    @classmethod
    async def open(cls, bootstrap: str, client_id: str) -> Connection:
        host, _, port = bootstrap.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)), client_id)

    async def call(self, request: Request, version: int) -> Any:
        request = fitted(request, version)
        self._number += 1
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=self._number,
            client_id=self._client_id,
        )
        frame = encode(header, request_header_version(request.FLEXIBLE, version))
        encode_into(request, version, frame)
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        data = await self._reader.readexactly(size)
        header_version = response_header_version(request.API_KEY, request.FLEXIBLE, version)
        _, position = decode_from(ResponseHeader, header_version, data, 0)
        return decode(response_class(type(request)), version, data, position)

    def close(self) -> None:
        self._writer.close()


class Crowd:
    """The state that all members of a test share."""

    def __init__(
        self, bootstrap: str, partitions: int, *, cooperative: bool = False, static: bool = False
    ) -> None:
        self.bootstrap = bootstrap
        self.partitions = partitions
        self.cooperative = cooperative
        self.static = static
        self.members: dict[int, Member] = {}

    async def start(self, numbers: range) -> None:
        for number in numbers:
            self.members[number] = Member(self, number)
        await asyncio.gather(*(member.start() for member in self.members.values()))

    async def restart(self, number: int) -> None:
        """As a rolling deployment does: closes cleanly, comes back a moment later."""
        await self.members[number].stop()
        self.members[number] = Member(self, number)
        await self.members[number].start()

    def is_settled(self) -> bool:
        """Everyone is in one generation, and each partition is someone's."""
        held = [partition for member in self.members.values() for partition in member.held]
        generations = {member.generation for member in self.members.values()}
        return sorted(held) == list(range(self.partitions)) and len(generations) == 1

    async def settle(self, seconds: float = 90.0) -> float:
        begun = time.monotonic()
        while not self.is_settled():
            assert time.monotonic() - begun < seconds, "the group did not settle"
            await asyncio.sleep(0.02)
        return time.monotonic() - begun

    @property
    def idle_s(self) -> float:
        """How long partitions were nobody's, or their owner stood still, summed over members."""
        return sum(member.idle_s for member in self.members.values())


class Member:
    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd = crowd
        self._number = number
        self._instance = f"instance-{number}" if crowd.static else None
        self.member_id = ""
        self.generation = -1
        self.held: set[int] = set()
        self.rebalances = 0
        self.idle_s = 0.0
        self._ends = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._connection = await Connection.open(self._crowd.bootstrap, f"member-{self._number}")
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """A static member goes without a word, as clients do; others leave."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._connection.close()
        if self._instance is None and self.member_id:
            last = await Connection.open(self._crowd.bootstrap, "last words")
            await last.call(leave("storm", self.member_id), 5)
            last.close()

    async def _run(self) -> None:
        while True:
            await self._join()
            while True:
                await asyncio.sleep(HEARTBEAT_S)
                beat = heartbeat("storm", self.member_id, self.generation, instance=self._instance)
                code = (await self._connection.call(beat, 4)).error_code
                if code != ErrorCode.NONE:
                    break
            if code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
                self.member_id, self.held = "", set()

    async def _join(self) -> None:
        begun = time.monotonic()
        if not self._crowd.cooperative:
            self.held = set()
        was = set(self.held)
        while True:
            answer = await self._connection.call(self._join_request(), 9)
            self.member_id = answer.member_id
            if answer.error_code == ErrorCode.NONE:
                self.generation = answer.generation_id
                shares = {}
                if answer.leader == answer.member_id and not answer.skip_assignment:
                    shares = self._share(answer.members)
                request = sync("storm", self.member_id, self.generation, shares, instance=self._instance)
                synced = await self._connection.call(request, 5)
                if synced.error_code == ErrorCode.NONE:
                    break
            elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        given = set()
        if synced.assignment:
            for topic in decode(ConsumerProtocolAssignment, 1, synced.assignment, 2).assigned_partitions:
                given.update(topic.partitions)
        self.rebalances += 1
        if not self._crowd.cooperative or not was:
            self.idle_s += time.monotonic() - begun
        lost = was - given
        self.held = given
        if self._crowd.cooperative and lost:
            await self._join()  # what it let go of can be given to others now

    def _join_request(self) -> Request:
        owned = {TOPIC: sorted(self.held)} if self._crowd.cooperative and self.held else None
        return join(
            "storm",
            self.member_id,
            instance=self._instance,
            protocols={"range": subscription(TOPIC, owned=owned)},
            session_ms=20_000,
            rebalance_ms=20_000,
        )

    def _share(self, members: Any) -> Mapping[str, bytes]:
        """Even shares; in a cooperative group everyone keeps what it may, and gets only what nobody owns."""
        owned: dict[str, list[int]] = {}
        for member in members:
            told = decode(ConsumerProtocolSubscription, 1, member.metadata, 2).owned_partitions
            owned[member.member_id] = [p for topic in told for p in topic.partitions]
        share, extra = divmod(self._crowd.partitions, len(owned))
        order = sorted(owned, key=lambda m: (-len(owned[m]), m))
        quota = {m: share + (1 if n < extra else 0) for n, m in enumerate(order)}
        taken = {p for partitions in owned.values() for p in partitions}
        free = [p for p in range(self._crowd.partitions) if p not in taken]
        result = {}
        for member_id in order:
            kept = owned[member_id][: quota[member_id]]
            while len(kept) < quota[member_id] and free:
                kept.append(free.pop())
            result[member_id] = assignment({TOPIC: sorted(kept)})
        return result
