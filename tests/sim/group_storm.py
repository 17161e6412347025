"""One coordinator of groups in a storm: the real machine and the runtime that gives it its log, without a broker.

Members of either protocol (`group_members`) send it requests, which come late; responses get lost. Its log is committed
when a follower has it, and what is not can be lost when the follower takes over. `group_judge` looks at every request
that arrives and at every response that is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.broker.server.request_batching import RequestBatcher
from strandline.groups.classic.rebalance import join_refused, sync_refused
from strandline.groups.committed_offset import OffsetChanges
from strandline.groups.consumer.requests import Join, heartbeat_refused
from strandline.groups.members import Caller
from strandline.groups.result import CoordinatorResult
from strandline.groups.settings import ConsumerTimes, GroupSettings
from strandline.groups.shard import GroupShard
from strandline.sim.random import Generator, SimulatedRandom, generator
from strandline.telemetry.counters import Counters
from strandline.telemetry.events import Events
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest
from strandline.wire.api.k09_offset_fetch import OffsetFetchRequest
from strandline.wire.api.k11_join_group import JoinGroupRequest
from strandline.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse
from strandline.wire.api.k14_sync_group import SyncGroupRequest
from strandline.wire.api.k42_delete_groups import DeleteGroupsRequest
from strandline.wire.api.k47_offset_delete import OffsetDeleteRequest
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.record_batch import records_in
from strandline.wire.records.markers import Marker, read_marker
from strandline.wire.records.offsets_framing import decode_entry
from tests.sim.group_calls import Call
from tests.sim.group_deletions import delete_group, delete_offset
from tests.sim.group_judge import GroupJudge
from tests.sim.group_records import Held
from tests.sim.led_partition import LedPartition, wall_ms
from tests.sim.storm import DELAY_S
from tests.unit.groups.machine import FakeTopics, topic_id

GROUP = "g"
TOPICS = {"orders": 4, "other": 2}
SESSION_S = 5.0
COMMIT_TIMEOUT_MS = 1500
_REPLICATION_S = 0.02
_LOST = 0.02
_LATE = 0.02

_EXPIRY_S = 0.7
RETENTION_S = 4.0

SETTINGS = GroupSettings(
    session_timeout_min_ms=100,
    session_timeout_max_ms=60_000,
    initial_rebalance_delay_ms=100,
    group_size_max=100,
    new_member_join_timeout_ms=300_000,
    offset_metadata_size_max=100,
    offsets_retention_ms=int(RETENTION_S * 1000),
    consumer_times=lambda group: ConsumerTimes(int(SESSION_S * 1000), 500),
    consumer_group_size_max=100,
    consumer_assignors=("uniform", "range"),
    migration_policy="bidirectional",
)


class Committed:
    """The response to an OffsetCommit, as the runtime fills it."""

    def __init__(self, code: int = 0) -> None:
        self.error_code = code


class Fetched:
    """The response to an OffsetFetch of one partition."""

    def __init__(self, offset: int) -> None:
        self.error_code = 0
        self.offset = offset


class GroupStorm:
    def __init__(self, seed: int) -> None:
        self.chance: Generator = generator(seed, "group storm")
        self.log = LedPartition("__consumer_offsets")
        self.topics = FakeTopics(**TOPICS)
        self.judge = GroupJudge(self.log, self.topics, SESSION_S, RETENTION_S)
        self.is_by_id = False  # members know topics by their ids, which change when they are created again
        self.is_calm = False
        self._number = 0
        self._random = SimulatedRandom(generator(seed, "ids of members"))
        self.runtime: GroupRuntime | None = None

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def number(self) -> int:
        self._number += 1
        return self._number

    def partitions(self) -> list[Held]:
        return [
            ((self.topics.topic_id(name) if self.is_by_id else None) or topic_id(name), index)
            for name, count in self.topics.counts.items()
            for index in range(count)
        ]

    # The coordinator

    def start(self) -> None:
        node: Any = SimpleNamespace(
            config=SimpleNamespace(int=lambda name: COMMIT_TIMEOUT_MS),
            clock=SimpleNamespace(monotonic=lambda: self.now, wall_ms=wall_ms),
            events=Events(lambda line: None, wall_ms),
        )
        replicas: Any = SimpleNamespace()
        runtime = GroupRuntime(
            node, replicas, RequestBatcher(node.clock), self.log.replica, self.rebuilt(), 0
        )
        self.runtime = runtime
        self._forget_former_topics(runtime)

    def _forget_former_topics(self, runtime: GroupRuntime) -> None:
        with self.judge.deletions.asked():
            runtime.forget_former_topics()

    def rebuilt(self) -> GroupShard:
        """Returns the shard that a new coordinator makes from the log."""
        shard = GroupShard(SETTINGS, self.topics, self._random, Counters())
        now = Moment(self.now, wall_ms())
        for header, batch in self.log.batches:
            if header.is_control:
                marker = read_marker(batch)
                assert marker is not None
                shard.end_transaction(header.producer_id, marker.is_commit, now)
                continue
            for record in records_in(batch):
                entry = decode_entry(record.key or b"", record.value)
                assert entry is not None
                shard.replay(*entry, header.producer_id)
        shard.loaded(now)
        return shard

    def stop(self) -> None:
        if self.runtime is not None:
            stopped, self.runtime = self.runtime, None
            stopped.stop()

    def fail_over(self) -> None:
        """Makes another broker the leader, with its copy of the log; requests find it when it has loaded that."""
        self.stop()
        ends = self.log.ends_above_committed()
        lag = self.chance.choice((0, 0, 1, 5))
        self.log.fail_over(self.chance.choice(ends), max(self.log.committed_end - lag, 0))
        self.log.is_stalled = False
        self.judge.failed_over()
        self.start()

    async def replicate(self) -> None:
        while True:
            await asyncio.sleep(_REPLICATION_S * self.chance.random())
            self.log.replicate()
            self.judge.read()
            if self.runtime is not None:
                self.runtime.shard.check_invariants()

    async def expire(self) -> None:
        """Expires offsets, as the broker does every `offsets.retention.check.interval.ms`."""
        while True:
            await asyncio.sleep(_EXPIRY_S)
            if self.runtime is not None:
                self._forget_former_topics(self.runtime)
                self.runtime.expire_offsets()

    # Topics

    async def remake_topics(self, chance: Generator) -> None:
        """Deletes a topic now and then, and creates it again, at once or after a while."""
        while not self.is_calm:
            await asyncio.sleep(chance.uniform(0.0, 5.0))
            name = chance.choice(sorted(TOPICS))
            if len(self.topics.counts) == len(TOPICS):
                self._remove(name, is_noticed=chance.random() < 0.5)
                await asyncio.sleep(chance.choice((0.0, 0.0, chance.uniform(0.0, 3.0))))
                self.topics.change(name, TOPICS[name])

    def _remove(self, name: str, *, is_noticed: bool) -> None:
        """A coordinator that is about to load its log does not notice; it looks for such topics when it has."""
        self.topics.change(name, 0)
        if self.runtime is not None and is_noticed:
            with self.judge.deletions.asked():
                self.runtime.topic_gone(name)

    # Requests

    async def ask(
        self,
        request: Any,
        version: int,
        timeout_s: float,
        *,
        is_last: Callable[[], bool] = lambda: True,
        is_prompt: bool = True,
        producer_id: int = -1,
    ) -> Any | None:
        """Returns the response, or None if it does not come in time. A request that its sender has given up arrives
        nowhere."""
        pending: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(request, version, self.judge, pending)
        call.is_prompt, call.producer_id = is_prompt, producer_id
        self.judge.calls.append(call)
        loop = asyncio.get_running_loop()
        if self.is_calm or self.chance.random() >= _LOST:
            loop.call_later(self._delay(), lambda: self._arrive(call) if is_last() else call.drop())
        else:
            call.drop()
        try:
            response = await asyncio.wait_for(pending, timeout_s)
        except TimeoutError:
            return None
        await asyncio.sleep(self._delay())
        return None if not self.is_calm and self.chance.random() < _LOST else response

    def _delay(self) -> float:
        late = not self.is_calm and self.chance.random() < _LATE
        return self.chance.uniform(0.0, 2.0) if late else DELAY_S * self.chance.random()

    def _arrive(self, call: Call) -> None:
        call.arrived_at = self.now
        self.judge.arrived(call)
        if self.runtime is None:
            call.respond(refusal(call.request, ErrorCode.NOT_COORDINATOR))
            return
        runtime = self.runtime
        runtime.write_queued()
        shard, request, now = runtime.shard, call.request, runtime.now()
        caller = Caller("client", "/127.0.0.1", call.version)
        match request:
            case JoinGroupRequest():
                runtime.run(shard.join(request, caller, call, now))
            case SyncGroupRequest():
                runtime.run(shard.sync(request, call, now))
            case HeartbeatRequest():
                response = shard.heartbeat(request, now)
                runtime.run(CoordinatorResult())
                call.respond(response)
            case LeaveGroupRequest():
                runtime.run(shard.leave(request, call.version, call, now))
            case ConsumerGroupHeartbeatRequest() if request.member_epoch == 0:
                runtime.join(Join(request, caller, call))
            case ConsumerGroupHeartbeatRequest():
                runtime.run(shard.consumer_heartbeat(request, caller, call, now))
            case OffsetCommitRequest():
                self._commit(runtime, call)
            case OffsetFetchRequest():
                self._fetch(runtime, call)
            case DeleteGroupsRequest():
                with self.judge.deletions.asked(call):
                    delete_group(runtime, call)
            case OffsetDeleteRequest():
                with self.judge.deletions.asked(call):
                    delete_offset(runtime, call)
            case _:
                raise NotImplementedError(type(request))

    def _commit(self, runtime: GroupRuntime, call: Call) -> None:
        request = call.request
        now = runtime.now()
        asked = []
        for topic in request.topics:
            known = self.topics.topic_id(topic.name)
            if known is None:
                call.respond(Committed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                return
            asked.append(OffsetChanges.of(request.group_id, topic.name, known, topic.partitions, now.wall_ms))
        who = (request.group_id, request.member_id, request.group_instance_id)
        generation = request.generation_id_or_member_epoch
        requests = runtime.shard.offset_requests
        try:
            if call.producer_id >= 0:
                requests.check_commit_in_transaction(*who, generation, asked)
                requests.create_group_if_absent(request.group_id, now)
            else:
                requests.check_commit(*who, generation, asked, call.version)
                requests.commit_accepted(request.group_id, request.member_id, now)
        except KafkaError as error:
            call.respond(Committed(error.code))
            return
        if call.producer_id < 0:
            runtime.commit(asked, call, Committed())
            return
        guard = runtime.replica.producers.transactions.begin_check(
            call.producer_id, 0, -1, begins_with_zero=False
        )
        result = CoordinatorResult(responses=[(call, Committed())], commits=asked)
        runtime.commit_in_transaction(result, call.producer_id, 0, guard)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        if self.runtime is not None:
            with suppress(KafkaError):  # too few replicas: the coordinator of transactions would come again
                self.runtime.end_transaction(producer_id, 0, Marker(is_commit, 0), 0)

    def _fetch(self, runtime: GroupRuntime, call: Call) -> None:
        (group,) = call.request.groups
        (topic,) = group.topics
        try:
            runtime.shard.offset_requests.check_fetch(group.group_id, group.member_id, group.member_epoch)
            committed = runtime.committed()
        except KafkaError as error:
            call.respond(Committed(error.code))
            return
        found = committed.get(group.group_id, topic.name, topic.partition_indexes[0])
        call.respond(Fetched(-1 if found is None else found.offset))


def start(work: Any) -> asyncio.Task[Any]:
    """Starts a task whose failure ends the run."""
    loop: Any = asyncio.get_running_loop()

    def ended(done: asyncio.Task[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            loop.fail(error)

    task: asyncio.Task[Any] = loop.create_task(work)
    task.add_done_callback(ended)
    return task


def refusal(request: Any, code: int) -> Any:
    match request:
        case JoinGroupRequest():
            return join_refused(request.member_id, code)
        case SyncGroupRequest():
            return sync_refused(code)
        case HeartbeatRequest():
            return HeartbeatResponse(error_code=code)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error_code=code, members=())
        case ConsumerGroupHeartbeatRequest():
            return heartbeat_refused(code)
    return Committed(code)
