"""The requests of the fetcher, and how positions are found and validated, with brokers that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.config.config import ClientConfig
from strandline.client.consumer.fetch_buffer import Deserializers, FetchBuffer
from strandline.client.consumer.fetcher import Fetcher
from strandline.client.consumer.log_offsets import EpochEnd, OffsetAndTimestamp
from strandline.client.consumer.positions import LogTruncationError, Positions
from strandline.client.consumer.subscription import OffsetAndMetadata, PositionStatus, SubscriptionState
from strandline.client.errors import KafkaError, OffsetOutOfRangeError, error_for
from strandline.client.net.backoff import Backoff
from strandline.client.net.metadata import Metadata
from strandline.telemetry.counters import Counters
from strandline.wire.api.k01_fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.api.k03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from strandline.wire.record_batch import Record, build_batch

TOPIC_ID = bytes(range(16))
WHERE = TopicPartition("t", 0)


class ScriptedCluster:
    """Two brokers; the first leads the only partition."""

    def __init__(self, **settings: Any) -> None:
        self.config = ClientConfig.consumer(bootstrap_servers="x:1", **settings)
        self.metadata = Metadata()
        self.updates = 0
        self.asked: list[tuple[int, FetchRequest]] = []
        self.waiting: list[asyncio.Future[Any]] = []
        self.world = SimpleNamespace(clock=SimpleNamespace(wall_ms=lambda: 1_000_000))
        self.lead(1, 0)

    def lead(self, leader: int, epoch: int) -> None:
        partition = MetadataResponsePartition(
            error_code=0,
            partition_index=0,
            leader_id=leader,
            leader_epoch=epoch,
            replica_nodes=(1, 2),
            isr_nodes=(1, 2),
        )
        topic = MetadataResponseTopic(error_code=0, name="t", topic_id=TOPIC_ID, partitions=(partition,))
        brokers = tuple(MetadataResponseBroker(node_id=n, host="h", port=n, rack=f"r{n}") for n in (1, 2))
        self.metadata.apply(MetadataResponse(brokers=brokers, topics=(topic,)))

    def now(self) -> float:
        return 100.0

    def backoff(self) -> Backoff:
        return Backoff(100, 1000, lambda limit: 0)

    def request_update(self) -> None:
        self.updates += 1

    def leaders_changed(self) -> None:
        pass

    def connection(self, node: int, purpose: str) -> Any:
        async def nothing() -> None:
            return

        def send(request: FetchRequest, version: int) -> asyncio.Future[Any]:
            self.asked.append((node, request))
            self.waiting.append(asyncio.get_running_loop().create_future())
            return self.waiting[-1]

        return SimpleNamespace(open=nothing, send=send, version=lambda kind, at_most=None: at_most or 17)


class Reading:
    def __init__(self, **settings: Any) -> None:
        self.cluster = ScriptedCluster(**settings)
        self.subscription = SubscriptionState()
        self.subscription.assign_from_user([WHERE])
        self.state = self.subscription.state(WHERE)
        self.subscription.set_position(self.state, 0)
        self.buffer = FetchBuffer(self.subscription, Deserializers())
        self.fetcher = Fetcher(self.cluster, self.subscription, self.buffer, Counters(), lambda: None)  # type: ignore[arg-type]

    async def asked(self) -> tuple[int, FetchRequest]:
        """Returns the next request, with the broker that it goes to."""
        self.fetcher.dispatch()
        for _ in range(5):
            await asyncio.sleep(0)
        return self.cluster.asked[-1]

    async def respond(self, records: range = range(0), *, error: int = 0, **more: Any) -> None:
        data = build_batch([Record(n, 0, None, b"v") for n in records], leader_epoch=0) if records else b""
        partition = PartitionData(
            partition_index=0,
            error_code=error,
            high_watermark=100,
            last_stable_offset=100,
            aborted_transactions=None,
            records=memoryview(data),
            **more,
        )
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(partition,))
        self.cluster.waiting[-1].set_result(
            FetchResponse(throttle_time_ms=0, session_id=5, responses=(topic,))
        )
        for _ in range(5):
            await asyncio.sleep(0)


def scripted(test: Callable[[Reading], Any], **settings: Any) -> None:
    async def main() -> None:
        reading = Reading(**settings)
        await test(reading)
        await reading.fetcher.close()

    asyncio.run(main())


def test_the_next_fetch_is_asked_for_while_the_last_is_in_the_buffer() -> None:
    async def main(reading: Reading) -> None:
        node, request = await reading.asked()
        assert (node, request.session_epoch) == (1, 0)
        await reading.respond(range(5))
        node, request = await reading.asked()
        assert len(reading.cluster.asked) == 2
        assert (request.session_id, request.session_epoch) == (5, 1)
        assert request.topics[0].partitions[0].fetch_offset == 5
        assert reading.state.position == 0

    scripted(main)


def test_a_full_buffer_stops_the_fetching() -> None:
    async def main(reading: Reading) -> None:
        await reading.asked()
        await reading.respond(range(50))
        await reading.asked()
        assert len(reading.cluster.asked) == 1
        assert len(reading.buffer.take(100)) == 50
        await reading.asked()
        assert len(reading.cluster.asked) == 2

    scripted(main, max_partition_fetch_bytes=100)


def test_nothing_after_the_reader_s_end_is_fetched() -> None:
    async def main(reading: Reading) -> None:
        reading.state.fetch_until = 8
        await reading.asked()
        await reading.respond(range(5))
        await reading.asked()
        assert len(reading.cluster.asked) == 2, "there is more before the end"
        await reading.respond(range(5, 10))
        await reading.asked()
        assert len(reading.cluster.asked) == 2, "all is fetched that is wanted, and two records more"
        assert len(reading.buffer.take(100)) == 10
        reading.state.fetch_until = None
        _, request = await reading.asked()
        assert request.topics[0].partitions[0].fetch_offset == 10

    scripted(main)


def test_a_reader_that_stops_asks_for_about_as_much_as_lies_before_its_end() -> None:
    async def main(reading: Reading) -> None:
        def asked_bytes(request: FetchRequest) -> int:
            return request.topics[0].partitions[0].partition_max_bytes

        reading.state.fetch_until = 20_005
        _, request = await reading.asked()
        assert asked_bytes(request) == 1 << 20, "nothing is known of the records"
        await reading.respond(range(5))
        size = len(build_batch([Record(n, 0, None, b"v") for n in range(5)], leader_epoch=0))
        _, request = await reading.asked()
        assert asked_bytes(request) == 20_000 * size // 5 + 256 * 1024
        reading.state.fetch_until = 1 << 40
        await reading.respond(range(5, 10))
        _, request = await reading.asked()
        assert asked_bytes(request) == 4 << 20, "never more than is configured"

    scripted(main, max_partition_fetch_bytes=4 << 20)


def test_a_closer_replica_is_read_from_until_it_fails() -> None:
    """KIP-392."""

    async def main(reading: Reading) -> None:
        node, request = await reading.asked()
        assert (node, request.rack_id) == (1, "r2")
        await reading.respond(preferred_read_replica=2)
        assert (await reading.asked())[0] == 2
        await reading.respond(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        assert reading.state.status is PositionStatus.FETCHING, "a follower may lag: the leader decides"
        assert (await reading.asked())[0] == 1
        await reading.respond(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        assert reading.state.status is PositionStatus.AWAIT_RESET

    scripted(main, client_rack="r2")


def test_a_response_for_a_position_that_was_left_is_dropped() -> None:
    async def main(reading: Reading) -> None:
        await reading.asked()
        reading.subscription.set_position(reading.state, 40)
        await reading.respond(range(5))
        assert reading.buffer.size == 0
        _, request = await reading.asked()
        assert request.topics[0].partitions[0].fetch_offset == 40

    scripted(main)


def test_a_new_leader_is_not_read_from_before_the_position_is_checked() -> None:
    """KIP-320."""

    async def main(reading: Reading) -> None:
        await reading.asked()
        await reading.respond(range(5))
        reading.buffer.take(10)
        await reading.asked()
        await reading.respond()
        reading.cluster.lead(2, 1)
        count = len(reading.cluster.asked)
        await reading.asked()
        assert reading.state.status is PositionStatus.AWAIT_VALIDATION
        assert len(reading.cluster.asked) <= count + 1

    scripted(main)


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID])
def test_stale_knowledge_asks_for_metadata_and_raises_nothing(code: ErrorCode) -> None:
    async def main(reading: Reading) -> None:
        await reading.asked()
        await reading.respond(error=code)
        assert reading.cluster.updates >= 1
        assert reading.fetcher.errors == []

    scripted(main)


def test_an_authorization_error_is_raised() -> None:
    async def main(reading: Reading) -> None:
        await reading.asked()
        await reading.respond(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert [error.code for error in reading.fetcher.errors] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]

    scripted(main)


# Positions


class ScriptedLog:
    def __init__(
        self,
        *,
        ends: EpochEnd | None = None,
        offset: int = 7,
        failures: dict[TopicPartition, KafkaError] | None = None,
    ) -> None:
        self.failures = failures or {}
        self.ends = ends
        self.offset = offset
        self.times: list[int] = []

    async def try_timestamps(self, wanted: dict[TopicPartition, int], take: Any) -> dict[TopicPartition, Any]:
        self.times += wanted.values()
        return self._respond(wanted, take, OffsetAndTimestamp(self.offset, 0, 0))

    async def try_epoch_ends(self, wanted: dict[TopicPartition, int], take: Any) -> dict[TopicPartition, Any]:
        return self._respond(wanted, take, self.ends)

    def _respond(
        self, wanted: dict[TopicPartition, int], take: Any, offset: Any
    ) -> dict[TopicPartition, Any]:
        for where in wanted:
            if where not in self.failures:
                take(where, offset)
        return {where: self.failures[where] for where in wanted if where in self.failures}


def find_missing(
    log: ScriptedLog, subscription: SubscriptionState, policy: str = "earliest", committed: Any = None
) -> None:
    cluster: Any = ScriptedCluster(auto_offset_reset=policy)
    positions = Positions(cluster, subscription, log, committed, Counters())  # type: ignore[arg-type]
    asyncio.run(positions.find_missing(0))


def at(offset: int, epoch: int) -> SubscriptionState:
    subscription = SubscriptionState()
    subscription.assign_from_user([WHERE])
    subscription.set_position(subscription.state(WHERE), offset, epoch)
    return subscription


def test_a_position_that_the_log_still_has_is_kept() -> None:
    subscription = at(50, 3)
    find_missing(ScriptedLog(ends=EpochEnd(3, 80)), subscription)
    state = subscription.state(WHERE)
    assert (state.position, state.status) == (50, PositionStatus.FETCHING)


def test_a_truncated_log_is_read_on_from_where_it_was_cut() -> None:
    subscription = at(50, 3)
    find_missing(ScriptedLog(ends=EpochEnd(2, 41)), subscription)
    state = subscription.state(WHERE)
    assert (state.position, state.position_epoch, state.status) == (41, 2, PositionStatus.FETCHING)


def test_truncation_is_raised_where_the_policy_is_none() -> None:
    with pytest.raises(LogTruncationError, match="seek to 41") as raised:
        find_missing(ScriptedLog(ends=EpochEnd(2, 41)), at(50, 3), "none")
    assert isinstance(raised.value, OffsetOutOfRangeError)
    assert raised.value.safe_offset == 41


def test_committed_offsets_come_before_the_policy() -> None:
    class Committed:
        async def fetch(self, partitions: list[TopicPartition], deadline: float) -> Any:
            return {WHERE: OffsetAndMetadata(33)}

    subscription = SubscriptionState()
    subscription.assign_from_user([WHERE, TopicPartition("t", 1)])
    log = ScriptedLog(offset=7)
    find_missing(log, subscription, "by_duration:PT10S", Committed())
    assert subscription.state(WHERE).position == 33
    assert subscription.state(TopicPartition("t", 1)).position == 7
    assert log.times == [1_000_000 - 10_000]


def test_a_leader_that_comes_while_the_last_one_checks_the_position_is_asked_too() -> None:
    class Elected(ScriptedLog):
        async def try_epoch_ends(self, wanted: dict[TopicPartition, int], take: Any) -> Any:
            cluster.lead(2, 5)
            return await super().try_epoch_ends(wanted, take)

    cluster: Any = ScriptedCluster()
    cluster.lead(1, 4)
    subscription = at(50, 3)
    log: Any = Elected(ends=EpochEnd(3, 80))
    asyncio.run(Positions(cluster, subscription, log, None, Counters()).find_missing(0))
    assert subscription.state(WHERE).leader_epoch == 4


@pytest.mark.parametrize("status", [PositionStatus.AWAIT_RESET, PositionStatus.AWAIT_VALIDATION])
def test_one_position_that_cannot_be_found_leaves_the_others(status: PositionStatus) -> None:
    other = TopicPartition("t", 1)
    subscription = SubscriptionState()
    subscription.assign_from_user([WHERE, other])
    for state in subscription.partitions.values():
        if status is PositionStatus.AWAIT_RESET:
            subscription.request_reset(state, None)
        else:
            subscription.set_position(state, 7, 3)
    away = error_for(ErrorCode.LEADER_NOT_AVAILABLE, "nobody leads it")
    find_missing(ScriptedLog(ends=EpochEnd(3, 80), failures={WHERE: away}), subscription)
    found, waiting = subscription.state(other), subscription.state(WHERE)
    assert (found.position, found.status) == (7, PositionStatus.FETCHING)
    assert waiting.status is status
    assert waiting.retry_at >= 100.0, "asked for again, and not at once"


def test_a_position_that_is_not_allowed_is_raised_when_the_others_are_found() -> None:
    subscription = SubscriptionState()
    subscription.assign_from_user([WHERE, TopicPartition("t", 1)])
    refused = error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t")
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        find_missing(ScriptedLog(failures={WHERE: refused}), subscription)
    assert subscription.state(TopicPartition("t", 1)).position == 7


def test_a_broker_that_leads_no_more_when_the_connection_is_there_is_not_asked() -> None:
    """A follower would respond in its place, with fewer records than the leader has."""

    async def main(reading: Reading) -> None:
        reading.fetcher.dispatch()
        reading.cluster.lead(2, 1)
        for _ in range(5):
            await asyncio.sleep(0)
        assert [node for node, _ in reading.cluster.asked] == [2]

    scripted(main)


def test_an_offset_that_a_former_leader_has_not_is_no_reason_to_begin_again() -> None:
    async def main(reading: Reading) -> None:
        reading.subscription.set_position(reading.state, 180)
        await reading.asked()
        reading.cluster.lead(2, 1)
        await reading.respond(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        assert reading.state.status is not PositionStatus.AWAIT_RESET
        assert reading.state.position == 180

    scripted(main)


@pytest.mark.parametrize("error", [0, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_late_response_of_a_former_leader_is_dropped(error: int) -> None:
    async def main(reading: Reading) -> None:
        await reading.asked()
        late = reading.cluster.waiting.pop()
        reading.cluster.lead(2, 1)
        reading.state.leader_epoch = 1
        assert (await reading.asked())[0] == 2
        await reading.respond(range(5))
        reading.cluster.waiting.append(late)
        await reading.respond(range(0) if error else range(3), error=error)
        assert reading.state.fetch_offset == 5
        assert [record.offset for record in reading.buffer.take(100)] == list(range(5))
        assert (reading.state.position, reading.state.status, reading.fetcher.errors) == (
            5,
            PositionStatus.FETCHING,
            [],
        )

    scripted(main)


def test_a_response_of_a_former_leader_while_the_position_is_validated_is_dropped() -> None:
    async def main(reading: Reading) -> None:
        await reading.asked()
        await reading.respond(range(5))
        reading.buffer.take(3)
        reading.cluster.lead(2, 1)
        reading.fetcher.dispatch()
        assert reading.state.status is PositionStatus.AWAIT_VALIDATION
        await reading.respond(range(5, 9))
        assert reading.state.fetch_offset == 5
        assert reading.buffer.take(100) == [], "what is in the buffer waits for the check"
        reading.state.status = PositionStatus.FETCHING
        assert [record.offset for record in reading.buffer.take(100)] == [3, 4]

    scripted(main)


def test_a_position_that_moves_while_the_connection_opens_is_asked_for() -> None:
    async def main(reading: Reading) -> None:
        reading.fetcher.dispatch()
        reading.subscription.set_position(reading.state, 40)
        for _ in range(5):
            await asyncio.sleep(0)
        assert reading.cluster.asked[-1][1].topics[0].partitions[0].fetch_offset == 40
        await reading.respond(range(40, 45))
        assert [record.offset for record in reading.buffer.take(100)] == list(range(40, 45))

    scripted(main)
