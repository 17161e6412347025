"""A groups' machine with its log: every decision is carried out at once, as a broker that is alone does it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from strandline.base.ids import ZERO_UUID
from strandline.base.moment import Moment
from strandline.groups.classic.group import EMPTY, STABLE, ClassicGroup
from strandline.groups.committed_offset import OffsetChanges
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.requests import Join
from strandline.groups.members import Caller
from strandline.groups.result import CoordinatorResult, Entry, RemovedMember
from strandline.groups.settings import ConsumerTimes, GroupSettings
from strandline.groups.shard import GroupShard
from strandline.telemetry.counters import Counters
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest
from strandline.wire.api.k11_join_group import JoinGroupRequest
from strandline.wire.api.k12_heartbeat import HeartbeatRequest
from strandline.wire.api.k13_leave_group import LeaveGroupRequest
from strandline.wire.api.k14_sync_group import SyncGroupRequest
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.records.offsets_framing import decode_entry, encode_key, encode_value

SETTINGS = GroupSettings(
    session_timeout_min_ms=100,
    session_timeout_max_ms=60_000,
    initial_rebalance_delay_ms=0,
    group_size_max=4,
    new_member_join_timeout_ms=300_000,
    offset_metadata_size_max=100,
    offsets_retention_ms=3_600_000,
    consumer_times=lambda group: ConsumerTimes(45_000, 5_000),
    consumer_group_size_max=4,
    consumer_assignors=("uniform", "range"),
    migration_policy="bidirectional",
)


class FakeTopics:
    """Topics that a test makes, grows and deletes; an id is a topic's name, and how often it was made before."""

    def __init__(self, **counts: int) -> None:
        self.counts = dict(counts)
        self._deletions: dict[str, int] = {}
        self.version = 1

    def change(self, name: str, count: int) -> None:
        self.counts[name] = count
        if not count:
            del self.counts[name]
            self._deletions[name] = self._deletions.get(name, 0) + 1
        self.version += 1

    def names(self) -> Iterable[str]:
        return self.counts

    def topic_id(self, name: str) -> bytes | None:
        return topic_id(name, self._deletions.get(name, 0)) if name in self.counts else None

    def name(self, topic_id: bytes) -> str:
        return next((name for name in self.counts if self.topic_id(name) == topic_id), "")

    def partition_count(self, name: str) -> int:
        return self.counts.get(name, 0)


def topic_id(name: str, deletions: int = 0) -> bytes:
    return name.encode().ljust(13, b".") + (b"%03d" % deletions if deletions else b"...")


def name_of(topic_id: bytes) -> str:
    """Of a topic that is there or was."""
    return topic_id[:13].rstrip(b".").decode()


class SeededRandom:
    def __init__(self) -> None:
        self._random = random.Random(1)

    def uuid(self) -> bytes:
        return self._random.randbytes(16)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


class Token:
    """Where a response arrives."""

    def __init__(self) -> None:
        self.response: Any = None


class Machine:
    def __init__(self, topics: FakeTopics | None = None, settings: GroupSettings = SETTINGS) -> None:
        self.settings = settings
        self.topics = topics or FakeTopics(orders=4, other=2)
        self.random = SeededRandom()
        self.counters = Counters()
        self.shard = self._new_shard()
        self.log: list[Entry] = []
        self.removed: list[RemovedMember] = []
        self.ms = 1_700_000_000_000

    def _new_shard(self) -> GroupShard:
        return GroupShard(self.settings, self.topics, self.random, self.counters)

    def now(self) -> Moment:
        return Moment(self.ms / 1000, self.ms)

    def run(self, result: CoordinatorResult) -> None:
        while True:
            commits = [
                self.shard.offsets.entry(changes.group_id, changes.topic, partition, committed)
                for changes in result.commits
                for partition, committed in changes.committed().items()
            ]
            for entry in [*result.entries, *commits]:
                self.log.append(_through_bytes(entry))
                self.shard.apply(*entry)
            for token, response in result.responses:
                assert isinstance(token, Token)
                assert token.response is None, "two responses"
                token.response = response
            if result.on_written is None or not result.has_records:
                return
            result = self.shard.written(result.on_written, self.now())

    def send(self, request: Any, version: int | None = None, client: str = "client") -> Token:
        """Sends a request, and returns the token that has its response, now or later."""
        token = Token()
        shard, now = self.shard, self.now()
        caller = Caller(client, "/127.0.0.1", version if version is not None else request.VERSIONS.high)
        match request:
            case JoinGroupRequest():
                self.run(shard.join(request, caller, token, now))
            case SyncGroupRequest():
                self.run(shard.sync(request, token, now))
            case HeartbeatRequest():
                token.response = shard.heartbeat(request, now)
            case LeaveGroupRequest():
                self.run(shard.leave(request, caller.api_version, token, now))
            case ConsumerGroupHeartbeatRequest():
                self.run(shard.consumer_heartbeat(request, caller, token, now))
            case _:
                raise NotImplementedError(type(request))
        return token

    def join_together(self, requests: Sequence[ConsumerGroupHeartbeatRequest]) -> list[Any] | None:
        """Returns the responses to members that join in one iteration of the loop; None if each has to be handled
        alone."""
        joins = [Join(request, Caller("client", "/127.0.0.1", 1), Token()) for request in requests]
        result = self.shard.consumer_joins(joins, self.now())
        if result is None:
            return None
        self.run(result)
        return [join.token.response for join in joins if isinstance(join.token, Token)]

    def ask(self, request: Any, version: int | None = None, client: str = "client") -> Any:
        """Sends a request that has nothing to wait for, and returns its response."""
        response = self.send(request, version, client).response
        assert response is not None, f"no response to {request}"
        return response

    def commit(self, request: OffsetCommitRequest, version: int = 9) -> list[int]:
        now = self.now()
        asked = [
            OffsetChanges.of(
                request.group_id,
                topic.name,
                self.shard.topics.topic_id(topic.name) or ZERO_UUID,
                topic.partitions,
                now.wall_ms,
            )
            for topic in request.topics
        ]
        self.shard.offset_requests.check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            asked,
            version,
        )
        self.shard.offset_requests.commit_accepted(request.group_id, request.member_id, now)
        changes, codes = self.shard.offset_requests.with_allowed_notes(asked)
        if request.retention_time_ms < 0:
            self.run(CoordinatorResult(commits=changes))
        else:
            self.run(self.shard.offset_requests.expiring(changes, now.wall_ms + request.retention_time_ms))
        return [0] * sum(len(each.partitions) for each in asked) if codes is None else codes

    def pass_time(self, ms: int) -> None:
        """Deadlines are met in their order, each at its time."""
        end = self.ms + ms
        while True:
            deadline = self.shard.timers.next_deadline()
            if deadline is None or deadline * 1000 > end:
                break
            self.ms = max(self.ms, round(deadline * 1000))
            for result in self.shard.expire(self.now()):
                self.removed += result.removed
                self.run(result)
        self.ms = end

    def rebuilt(self) -> GroupShard:
        """Returns the shard that a new coordinator makes from the log."""
        shard = self._new_shard()
        for entry in self.log:
            shard.replay(*entry)
        shard.loaded(self.now())
        return shard

    def fail_over(self) -> None:
        self.shard = self.rebuilt()


def _through_bytes(entry: Entry) -> Entry:
    value = None if entry.value is None else encode_value(entry.value)
    decoded = decode_entry(encode_key(entry.key), value)
    assert decoded is not None
    return Entry(*decoded)


def durable(shard: GroupShard) -> dict[str, Any]:
    """Returns the state that a new coordinator must know. A classic group that rebalances is known as it was; its
    members rejoin."""
    groups: dict[str, Any] = {}
    for group_id, group in sorted(shard.groups.items()):
        if isinstance(group, ConsumerGroup):
            groups[group_id] = _of_consumer_group(group)
        elif group.state == STABLE or (group.state == EMPTY and group.generation > 0):
            groups[group_id] = _of_classic_group(group)
    return {
        "offsets": {g: shard.offsets.of_group(g) for g in sorted(shard.offsets.groups())},
        "groups": groups,
    }


def _of_consumer_group(group: ConsumerGroup) -> dict[str, Any]:
    return {
        "epoch": group.epoch,
        "hash": group.metadata_hash,
        "target epoch": group.assignment_epoch,
        "members": dict(group.members),
        "static": dict(group.static_members),
        "targets": {m: {t: p for t, p in target.items() if p} for m, target in group.targets.items()},
        "expressions": dict(group.regexes),
        "owners": dict(group.owners),
    }


def _of_classic_group(group: ClassicGroup) -> dict[str, Any]:
    return {
        "state": group.state,
        "generation": group.generation,
        "type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "static": dict(group.static_members),
        "members": {
            m.member_id: (
                m.instance_id,
                m.client_id,
                m.client_host,
                m.rebalance_timeout_ms,
                m.session_timeout_ms,
                m.metadata_for(group.protocol or ""),
                m.assignment,
            )
            for m in group.members.values()
        },
    }
