"""Members of a group in a storm: processes of either protocol, as clients behave, and some as they should not.

A prompt member does at once what it is told, a slow one within its rebalance timeout. One that is stuck sends its
heartbeats and does nothing else that is asked of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests import group_requests as ask
from tests.sim.group_calls import owned_in, partitions_in
from tests.sim.group_records import Held, held_in
from tests.sim.group_storm import GROUP, TOPICS, GroupStorm, start
from tests.unit.groups.machine import name_of

PROMPT, SLOW, STUCK = "prompt", "slow", "stuck"
_BEAT_S = 0.5
_PAUSE_S = 0.2
_CALL_S = 2.0
_NO_LONGER_A_MEMBER = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class Process:
    """The common part of both kinds of members: a life, and offsets."""

    def __init__(self, storm: GroupStorm, instance_id: str | None, habit: str) -> None:
        self.storm = storm
        self.instance_id = instance_id
        self.habit = habit
        self.chance = storm.chance
        self.is_alive = True
        self.paused_until = 0.0
        self.member_id = ""
        self.generation = -1  # or epoch
        self.rebalance_s = self.chance.choice((2.0, 6.0, 15.0))
        self.held: set[Held] = set()
        self._sent = 0
        self._before: tuple[int, tuple[Held, ...]] = (
            -1,
            (),
        )  # an earlier generation, and what was held in it

    async def send(
        self, request: Any, version: int, timeout_s: float = _CALL_S, producer_id: int = -1
    ) -> Any:
        """Sends a request of a member. A member has one connection: a request that it has given up does not arrive
        after the next one."""
        self._sent += 1
        number = self._sent
        while self.storm.now < self.paused_until and self.is_alive:
            await asyncio.sleep(_PAUSE_S)
        response = await self.storm.ask(
            request,
            version,
            timeout_s,
            is_last=lambda: number == self._sent,
            is_prompt=self.habit != STUCK,
            producer_id=producer_id,
        )
        return response if self.is_alive else None

    async def live(self) -> None:
        while self.is_alive:
            await self.step()
            if self.is_alive and self.chance.random() < 0.3:
                await self._use_offsets()

    async def step(self) -> None:
        raise NotImplementedError

    async def _use_offsets(self) -> None:
        if not self.member_id or self.generation < 0:
            return
        kind = self.chance.choice(("commit", "commit", "fetch", "late", "transaction"))
        if kind == "fetch":
            await self._look_at(self.chance.choice(self.storm.partitions()))
        elif kind == "late":
            generation, held = self._before
            if generation >= 0 and held:
                await self.commit(generation, self.chance.choice(held))
        elif self.held:
            producer_id = self.storm.number() if kind == "transaction" else -1
            await self.commit(self.generation, self.chance.choice(sorted(self.held)), producer_id)

    async def commit(self, generation: int, held: Held, producer_id: int = -1) -> None:
        topic, index = held
        request = ask.commit(
            GROUP,
            {index: self.storm.number()},
            member=self.member_id,
            generation=generation,
            instance=self.instance_id,
            topic=name_of(topic),
        )
        if self.chance.random() < 0.3:
            start(self._look_at(held))
        await self.send(request, 9, producer_id=producer_id)
        if producer_id >= 0:
            await asyncio.sleep(self.chance.random())
            self.storm.end_transaction(producer_id, self.chance.random() < 0.7)

    async def _look_at(self, held: Held) -> None:
        """Reads the group's offsets, as a tool does that shows how far a group is."""
        await asyncio.sleep(self.chance.uniform(0.0, 0.1))
        topic, index = held
        request = ask.fetch_offsets(GROUP, partitions=(index,), topic=name_of(topic))
        await self.storm.ask(request, 8, _CALL_S)

    def remember(self) -> None:
        """Notes a generation before it is over: requests of it may be sent again."""
        if self.held and self.chance.random() < 0.5:
            self._before = (self.generation, tuple(sorted(self.held)))

    def die(self) -> None:
        self.is_alive = False

    async def leave(self) -> None:
        raise NotImplementedError


class ClassicProcess(Process):
    def __init__(
        self, storm: GroupStorm, instance_id: str | None, habit: str, offers: tuple[str, ...]
    ) -> None:
        super().__init__(storm, instance_id, habit)
        self.offers = offers
        self.session_ms = self.chance.choice((3000, 6000))
        self._version = self.chance.choice((5, 9))
        self._must_rejoin_at: float | None = None
        self._syncs = True
        self._leads = False
        self._assigned_version = 0  # of the topics, when it last assigned them

    async def step(self) -> None:
        if self.generation < 0:
            await self._join()
        else:
            await self._beat()

    async def _join(self) -> None:
        self._must_rejoin_at = None
        self._leads = False
        metadata = self._metadata()
        request = ask.join(
            GROUP,
            self.member_id,
            instance=self.instance_id,
            protocols=dict.fromkeys(self.offers, metadata),
            session_ms=self.session_ms,
            rebalance_ms=int(self.rebalance_s * 1000),
        )
        response = await self.send(request, self._version, timeout_s=25.0)
        if response is None:
            await asyncio.sleep(_PAUSE_S)
            return
        match response.error_code:
            case ErrorCode.NONE:
                self.member_id, self.generation = response.member_id, response.generation_id
                await self._sync(response)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
            case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                self.die()
            case code:
                await self._refused(code)

    async def _sync(self, joined: Any) -> None:
        self._syncs = self.habit != STUCK or self.chance.random() < 0.5
        if self.chance.random() < 0.2:
            await self.commit(self.generation, self.chance.choice(self.storm.partitions()))
        shares: dict[str, bytes] = {}
        self._leads = joined.leader == self.member_id
        if self._leads and not joined.skip_assignment:
            self._assigned_version = self.storm.topics.version
            shares = {
                member_id: ask.assignment(by_topic(share))
                for member_id, share in self._assign(joined.members).items()
            }
        for _ in range(3):
            if not self._syncs or not self.is_alive or self.generation < 0:
                return
            request = ask.sync(
                GROUP,
                self.member_id,
                self.generation,
                shares,
                instance=self.instance_id,
                protocol=joined.protocol_name,
            )
            response = await self.send(request, 5, timeout_s=20.0)
            if response is None:
                continue
            if response.error_code == ErrorCode.NONE:
                self._take(partitions_in(response.assignment))
                return
            is_passing = response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            if not is_passing or self.chance.random() < 0.3:
                break
            await asyncio.sleep(_PAUSE_S)
        await self._refused(response.error_code if response is not None else 0)

    def _metadata(self) -> bytes:
        """Gives everything up before joining, as an eager member does."""
        self.held = set()
        return ask.subscription(*TOPICS)

    def _take(self, assigned: set[Held]) -> None:
        self.held = assigned

    def _assign(self, members: Iterable[Any]) -> dict[str, list[Held]]:
        """Assigns partitions by turns, beginning with any member."""
        shares: dict[str, list[Held]] = {member.member_id: [] for member in members}
        turn = self.chance.randrange(len(shares))
        for number, held in enumerate(self.storm.partitions()):
            list(shares.values())[(number + turn) % len(shares)].append(held)
        return shares

    async def _beat(self) -> None:
        await asyncio.sleep(_BEAT_S)
        request = ask.heartbeat(GROUP, self.member_id, self.generation, instance=self.instance_id)
        response = await self.send(request, 4)
        if response is not None and response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.habit == STUCK:
                return
            if self._must_rejoin_at is None:
                wait_s = self.chance.uniform(0.3, 0.7) * self.rebalance_s if self.habit == SLOW else 0.0
                self._must_rejoin_at = self.storm.now + wait_s
        elif response is not None and response.error_code != ErrorCode.NONE:
            await self._refused(response.error_code)
        if self._leads and self._assigned_version != self.storm.topics.version:
            self._must_rejoin_at = self.storm.now  # the leader looks after new partitions, whatever its habit
        if self._must_rejoin_at is not None and self.storm.now >= self._must_rejoin_at:
            self._rejoin()

    def _rejoin(self) -> None:
        self.remember()
        self.generation, self.held = -1, set()

    async def _refused(self, code: int) -> None:
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self.die()
            return
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE) and self.held:
            await asyncio.sleep(_PAUSE_S)
            return
        self._rejoin()
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            if self.habit == STUCK and self.storm.is_calm:
                self.die()
        await asyncio.sleep(_PAUSE_S)

    async def leave(self) -> None:
        self.die()
        if self.member_id:
            await self.storm.ask(ask.leave(GROUP, (self.member_id, self.instance_id)), 5, _CALL_S)


class CooperativeProcess(ClassicProcess):
    """Keeps what it has through a rebalance, lets go of what it is not given again, and then joins once more.

    What others have is given to nobody until they have let go of it. (KIP-429)
    """

    _owned_generation = -1
    _assigned: AbstractSet[Held] = frozenset()

    def _metadata(self) -> bytes:
        return ask.subscription(
            *TOPICS, owned=by_topic(sorted(self.held)), version=3, generation=self._owned_generation
        )

    def _take(self, assigned: set[Held]) -> None:
        is_letting_go = bool(self.held - assigned)
        self.held |= assigned
        self._owned_generation = self.generation
        if is_letting_go and self.habit != STUCK:
            wait_s = self.chance.uniform(0.1, 0.4) * self.rebalance_s if self.habit == SLOW else 0.0
            self._must_rejoin_at = self.storm.now + wait_s
        self._assigned = assigned

    def _rejoin(self) -> None:
        self.remember()
        if self._must_rejoin_at is not None:
            self.held &= self._assigned
        self.generation = -1

    async def _refused(self, code: int) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.held, self._owned_generation = set(), -1
        await super()._refused(code)

    def _assign(self, members: Iterable[Any]) -> dict[str, list[Held]]:
        claims = _claims(members)
        shares: dict[str, list[Held]] = {member.member_id: [] for member in members}
        counts = dict.fromkeys(shares, 0)
        partitions = self.storm.partitions()
        share_max = -(-len(partitions) // len(shares))
        left = []
        for held in partitions:
            owner = claims.get(held)
            if owner is not None and counts[owner] < share_max:
                shares[owner].append(held)
                counts[owner] += 1
            else:
                left.append(held)
        for held in left:
            member_id = min(counts, key=lambda each: (counts[each], each))
            counts[member_id] += 1
            if held not in claims:
                shares[member_id].append(held)
        return shares


def _claims(members: Iterable[Any]) -> dict[Held, str]:
    """Returns the partitions that members say they have. Where two differ, the one that was there later is right."""
    claims: dict[Held, tuple[int, str]] = {}
    for member in members:
        generation, owned = owned_in(member.metadata)
        for held in owned:
            claims[held] = max(claims.get(held, (-1, "")), (generation, member.member_id))
    return {held: member_id for held, (_, member_id) in claims.items()}


def by_topic(held: Iterable[Held]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in held:
        found.setdefault(name_of(topic), []).append(index)
    return found


class ConsumerProcess(Process):
    def __init__(self, storm: GroupStorm, instance_id: str | None, habit: str) -> None:
        super().__init__(storm, instance_id, habit)
        self.member_id = f"consumer-{storm.number()}"
        self.generation = 0
        self._target: set[Held] = set()
        self._lets_go_at: float | None = None

    async def step(self) -> None:
        if self.generation > 0:
            await asyncio.sleep(_BEAT_S * self.chance.uniform(0.5, 1.5))
            self._let_go()
        if not self.is_alive:
            return
        response = await self.send(self._request(), 1)
        if response is None:
            await asyncio.sleep(_PAUSE_S)
        elif response.error_code == ErrorCode.NONE:
            self._take(response)
        elif response.error_code == ErrorCode.FENCED_INSTANCE_ID:
            self.die()
        else:
            if response.error_code in _NO_LONGER_A_MEMBER:
                self.remember()
                self.generation, self.held, self._target = 0, set(), set()
                if self.habit == STUCK and self.storm.is_calm:
                    self.die()
            await asyncio.sleep(_PAUSE_S)

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        if self.generation == 0:
            self.held = self._target = set()
            return ask.consumer_join(
                GROUP,
                self.member_id,
                *TOPICS,
                instance=self.instance_id,
                rebalance_timeout_ms=int(self.rebalance_s * 1000),
            )
        indexes: dict[bytes, list[int]] = {}
        for topic, index in sorted(self.held):
            indexes.setdefault(topic, []).append(index)
        return ask.consumer_heartbeat(
            GROUP,
            self.member_id,
            self.generation,
            instance_id=self.instance_id,
            topic_partitions=ask.owned(indexes),
        )

    def _take(self, response: Any) -> None:
        if response.member_epoch != self.generation:
            self.remember()
        self.generation = response.member_epoch
        if response.assignment is None:
            return
        self._target = held_in(response.assignment.topic_partitions)
        self.held |= self._target
        if self.held != self._target and self._lets_go_at is None:
            wait_s = self.chance.uniform(0.2, 0.6) * self.rebalance_s if self.habit == SLOW else 0.0
            self._lets_go_at = self.storm.now + wait_s
        self._let_go()

    def _let_go(self) -> None:
        if self.habit != STUCK and self._lets_go_at is not None and self.storm.now >= self._lets_go_at:
            self._lets_go_at = None
            self.held = set(self._target)

    async def say_a_wrong_epoch(self) -> None:
        """Sends a heartbeat with a wrong epoch, as a process of an earlier life of this member would."""
        epoch = self.generation + self.chance.choice((-3, -2, -1, 1))
        if epoch > 0:
            request = ask.consumer_heartbeat(GROUP, self.member_id, epoch, instance_id=self.instance_id)
            await self.storm.ask(request, 1, _CALL_S, is_prompt=self.habit != STUCK)

    async def leave(self) -> None:
        """Leaves for good or, with an instance id, until it is back."""
        self.die()
        epoch = -2 if self.instance_id is not None and self.chance.random() < 0.8 else -1
        if self.generation > 0:
            request = ask.consumer_heartbeat(GROUP, self.member_id, epoch, instance_id=self.instance_id)
            await self.storm.ask(request, 1, _CALL_S)
