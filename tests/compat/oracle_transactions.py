"""Conversations about transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.api.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.api.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from strandline.wire.api.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from strandline.wire.api.k61_describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.api.k65_describe_transactions import DescribeTransactionsRequest
from strandline.wire.api.k66_list_transactions import ListTransactionsRequest
from strandline.wire.record_batch import TRANSACTIONAL_FLAG
from tests.batches import batch, resealed
from tests.compat.oracle_groups import Talk
from tests.compat.oracle_groups_classic import formed
from tests.group_requests import delete_offsets, fetch_offsets
from tests.record_times import recent_ms

TRANSACTION = 1
CONCURRENT_TRANSACTIONS = 51


class Producer:
    """One transactional id in one conversation; each of its answers is compared."""

    def __init__(self, talk: Talk, name: str, topic: str) -> None:
        self.talk = talk
        self.name = name
        self.topic = topic
        self.producer_id = self.epoch = -1
        self.sequence = 0
        self.count = 0
        found = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(name,))
        talk.quietly(found, 4)

    def _say(self, what: str) -> str:
        self.count += 1
        return f"{self.count} {what}"

    def begin(self, version: int = 5, *, timeout_ms: int = 60_000, knows: bool = False) -> Any:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id if knows else -1,
            producer_epoch=self.epoch if knows else -1,
        )
        answer = self.settled(lambda: self.talk.quietly(request, version))
        self.talk.note(self._say(f"begin v{version}"), answer)
        if not answer.error_code:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return answer

    def settled(self, ask: Callable[[], Any]) -> Any:
        return self.talk.until(ask, lambda answer: answer.error_code != CONCURRENT_TRANSACTIONS)

    def add(self, *partitions: int, version: int = 3, topic: str = "", epoch: int | None = None) -> Any:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch if epoch is None else epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic or self.topic, partitions=partitions),),
        )
        return self.talk(self._say(f"add {topic} {partitions} v{version}"), request, version)

    def ask(
        self, *partitions: int, epoch: int | None = None, verify_only: bool = True, version: int = 4
    ) -> Any:
        request = AddPartitionsToTxnRequest(
            transactions=(
                AddPartitionsToTxnTransaction(
                    transactional_id=self.name,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch if epoch is None else epoch,
                    verify_only=verify_only,
                    topics=(AddPartitionsToTxnTopic(name=self.topic, partitions=partitions),),
                ),
            )
        )
        return self.talk(self._say(f"ask {partitions} v{version}"), request, version)

    def send(
        self, partition: int, version: int, *, epoch: int | None = None, attributes: int = TRANSACTIONAL_FLAG
    ) -> Any:
        data = resealed(
            batch(
                2,
                timestamp=recent_ms(),
                producer_id=self.producer_id,
                epoch=self.epoch if epoch is None else epoch,
                sequence=self.sequence,
            ),
            attributes=attributes,
        )
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=(
                TopicProduceData(
                    name=self.topic, partition_data=(PartitionProduceData(index=partition, records=data),)
                ),
            ),
        )
        answer = self.talk(self._say(f"send {partition} v{version}"), request, version)
        if answer.responses[0].partition_responses[0].error_code == 0:
            self.sequence += 2
        return answer

    def end(self, committed: bool, version: int, *, epoch: int | None = None) -> Any:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=committed,
        )
        answer = self.settled(lambda: self.talk.quietly(request, version))
        self.talk.note(self._say(f"end {committed} v{version}"), answer)
        if answer.error_code == 0 and version >= 5:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        self.wait_for_rest()
        return answer

    def wait_for_rest(self) -> None:
        request = DescribeTransactionsRequest(transactional_ids=(self.name,))

        def is_at_rest(answer: Any) -> bool:
            return not answer.transaction_states[0].transaction_state.startswith("Prepare")

        self.talk.until(lambda: self.talk.quietly(request, 0), is_at_rest)

    def describe(self) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=(self.name, "", "no-such-id"))
        return self.talk(self._say("describe"), request, 0)

    def describe_producers(self, *partitions: int) -> Any:
        asked = TopicRequest(name=self.topic, partition_indexes=partitions)
        return self.talk(self._say("producers"), DescribeProducersRequest(topics=(asked,)), 0)

    def read(self, partition: int, isolation_level: int = 1, offset: int = 0) -> Any:
        where = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=-1
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=isolation_level,
            session_epoch=-1,
            topics=(FetchTopic(topic=self.topic, partitions=(where,)),),
        )
        for version in (4, 11, 12):
            self.talk(self._say(f"read {partition} at {isolation_level} v{version}"), request, version)
        latest = ListOffsetsPartition(partition_index=partition, timestamp=-1)
        asked = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=(ListOffsetsTopic(name=self.topic, partitions=(latest,)),),
        )
        self.talk(self._say(f"end of {partition} at {isolation_level}"), asked, 7)

    def add_offsets(self, group: str, version: int = 3) -> Any:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return self.talk(self._say(f"add offsets v{version}"), request, version)

    def commit_offsets(self, group: str, offset: int, version: int, **who: Any) -> Any:
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=who.pop("epoch", self.epoch),
            topics=(
                TxnOffsetCommitRequestTopic(
                    name=who.pop("topic", self.topic),
                    partitions=(
                        TxnOffsetCommitRequestPartition(
                            partition_index=who.pop("partition", 0),
                            committed_offset=offset,
                            committed_metadata=who.pop("metadata", "note"),
                        ),
                    ),
                ),
            ),
            **who,
        )
        return self.talk(self._say(f"commit offsets v{version}"), request, version)


def version_one(talk: Talk) -> None:
    producer = Producer(talk, "one", "orders")
    producer.begin(4)
    producer.describe()
    producer.send(0, 10)  # not added
    producer.send(0, 11)
    producer.add(0, 99)
    producer.add(0, topic="__consumer_offsets")
    producer.ask(0)
    producer.add(0, 1)
    producer.add(1)
    producer.ask(0, 1, 2)
    producer.ask(0, epoch=7)
    producer.send(0, 10)
    producer.send(0, 10, attributes=0)
    producer.describe()
    producer.describe_producers(0, 1)
    producer.read(0)
    producer.read(0, 0)
    producer.end(True, 4, epoch=9)
    producer.end(True, 1, epoch=9)
    producer.end(False, 3)
    producer.end(False, 3)  # again
    producer.end(True, 3)
    producer.read(0)
    producer.send(0, 10)
    producer.add(0, version=0, epoch=4)
    producer.add(0, version=2, epoch=4)
    producer.add(0)
    producer.send(0, 10)
    producer.end(True, 0)
    producer.read(0)
    producer.describe()
    producer.describe_producers(0, 1)


def version_two(talk: Talk) -> None:
    producer = Producer(talk, "two", "payments")
    producer.begin(5)
    producer.end(True, 5)
    producer.end(False, 5)
    producer.send(0, 12)
    producer.send(0, 12)
    producer.send(1, 12, epoch=0)
    producer.describe()
    producer.read(0)
    first = producer.epoch
    producer.end(True, 5)
    producer.end(True, 5, epoch=first)  # the retry
    producer.end(False, 5, epoch=first)
    producer.send(0, 12, epoch=first)
    producer.send(0, 12)
    producer.describe_producers(0)
    producer.end(False, 5)
    producer.end(False, 5)
    producer.read(0)
    producer.ask(1, verify_only=False, version=5)
    producer.describe()
    producer.end(False, 5)
    producer.describe_producers(0, 1)


def fencing(talk: Talk) -> None:
    old = Producer(talk, "fencing", "fenced")
    old.begin(4)
    old.send(0, 12)
    new = Producer(talk, "fencing", "fenced")
    new.count = 100
    new.begin(5)
    old.send(0, 12)
    old.send(0, 10)
    old.add(0, version=3)
    old.add(0, version=1)
    old.end(True, 5)
    old.end(True, 3)
    old.begin(4, knows=True)
    new.describe()
    new.read(0)
    new.begin(4, knows=True)
    new.begin(3, knows=True)
    before = new.epoch
    new.epoch = before - 1
    new.begin(4, knows=True)  # the retry of one whose answer was lost
    new.epoch = before - 3
    new.begin(4, knows=True)
    new.begin(3, knows=True)
    new.producer_id += 999
    new.begin(4, knows=True)


def bad_requests(talk: Talk) -> None:
    nobody = Producer(talk, "nobody", "orders")
    for version in (0, 2, 3, 5):
        nobody.begin(version, timeout_ms=0)
        nobody.begin(version, timeout_ms=900_001)
    nobody.producer_id, nobody.epoch = 5, 0
    nobody.add(3)
    nobody.ask(3)
    nobody.ask(3, verify_only=False, version=5)
    nobody.end(True, 3)
    nobody.end(True, 5)
    nobody.send(3, 10)
    nobody.send(3, 12)
    nobody.add_offsets("g")
    nobody.commit_offsets("g", 1, 3)
    nobody.commit_offsets("g", 1, 5)
    nobody.describe()
    unnamed = Producer(talk, "nobody", "orders")
    unnamed.count = 100
    unnamed.name = ""
    unnamed.begin(4)
    unnamed.add(3)
    unnamed.ask(3)
    unnamed.end(True, 3)
    unnamed.end(True, 5)
    unnamed.add_offsets("g")
    for version, request in enumerate(
        (
            ListTransactionsRequest(state_filters=("Nonsense",), producer_id_filters=()),
            ListTransactionsRequest(state_filters=(), producer_id_filters=(123456,), duration_filter=0),
            ListTransactionsRequest(
                state_filters=(), producer_id_filters=(), transactional_id_pattern="no-such.*"
            ),
        )
    ):
        talk(f"list v{version}", request, version)
    talk(
        "list of a bad pattern",
        ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern="(["),
        2,
    )


def offsets(talk: Talk) -> None:
    producer = Producer(talk, "offsets", "orders")
    group = "transactional-group"
    producer.begin(4)
    producer.commit_offsets(group, 1, 2)  # not added
    producer.commit_offsets(group, 1, 4)
    producer.add_offsets(group)
    producer.commit_offsets(group, 5, 3)
    talk("pending", fetch_offsets(group, partitions=(0,)), 7)
    talk("pending, stable", fetch_offsets(group, partitions=(0,), require_stable=True), 7)
    talk("pending, all stable", fetch_offsets(group, partitions=None, require_stable=True), 8)
    producer.end(True, 3)
    talk("committed", fetch_offsets(group, partitions=(0,), require_stable=True), 7)
    producer.commit_offsets(group, 9, 5)
    producer.commit_offsets(group, 9, 5, partition=77)
    producer.commit_offsets(group, 9, 5, topic="no-such")
    producer.commit_offsets(group, 9, 5, metadata="n" * 101)
    producer.commit_offsets(group, 9, 5, generation_id=3, member_id="somebody")
    producer.commit_offsets("no-such-group", 9, 5, generation_id=3, member_id="somebody")
    producer.commit_offsets("", 9, 5)
    producer.end(False, 5)
    talk("aborted", fetch_offsets(group, partitions=None, require_stable=True), 8)
    producer.commit_offsets(group, 11, 5, epoch=producer.epoch - 1)
    producer.commit_offsets(group, 11, 5)
    producer.end(True, 5)
    talk("committed again", fetch_offsets(group, partitions=None, require_stable=True), 8)
    never_committed = "deleted-while-pending"
    producer.commit_offsets(never_committed, 3, 5)
    talk("delete what is pending", delete_offsets(never_committed, (0, 1)), 0)
    producer.end(True, 5)
    producer.wait_for_rest()
    talk("deleted", fetch_offsets(never_committed, partitions=(0, 1), require_stable=True), 7)


def offsets_of_members(talk: Talk) -> None:
    producer = Producer(talk, "member-offsets", "orders")
    group = "transactional-members"
    member, generation = formed(talk, group)
    producer.begin(5)
    producer.commit_offsets(group, 1, 5, generation_id=generation + 1, member_id=member)
    producer.commit_offsets(group, 1, 5, generation_id=generation - 1, member_id=member)
    producer.commit_offsets(group, 1, 5, generation_id=generation, member_id="stranger")
    producer.commit_offsets(group, 1, 5, generation_id=generation, member_id=member, group_instance_id="i")
    producer.commit_offsets(group, 1, 5)  # it does not say who it is
    producer.commit_offsets(group, 7, 5, generation_id=generation, member_id=member)
    producer.end(True, 5)
    talk("committed by a member", fetch_offsets(group, partitions=None, require_stable=True), 8)


def offsets_of_a_topic_that_goes(talk: Talk) -> None:
    producer = Producer(talk, "offsets-of-gone", "doomed")
    group = "transactional-group-of-gone"
    producer.begin(5)
    producer.commit_offsets(group, 5, 5)
    talk("pending", fetch_offsets(group, topic="doomed", partitions=(0,), require_stable=True), 7)
    talk("deleted", DeleteTopicsRequest(topic_names=("doomed",), timeout_ms=10_000), 4)
    # Kafka's coordinator hears of it a little later.
    stable = fetch_offsets(group, topic="doomed", partitions=(0,), require_stable=True)
    talk.until(lambda: talk.quietly(stable, 7), lambda answer: not answer.topics[0].partitions[0].error_code)
    producer.end(True, 5)
    talk("gone", fetch_offsets(group, topic="doomed", partitions=(0,), require_stable=True), 7)
    talk("all of it", fetch_offsets(group, partitions=None, require_stable=True), 8)


def markers(talk: Talk) -> None:
    """An admin ends a transaction that nobody else ends."""
    producer = Producer(talk, "markers", "marked")
    producer.begin(5)
    producer.begin(5)
    producer.send(0, 12)

    def mark(
        name: str, *, epoch: int, coordinator_epoch: int, version: int, transaction_version: int = 0
    ) -> None:
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=(WritableTxnMarkerTopic(name="marked", partition_indexes=(0, 5)),),
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        talk(name, WriteTxnMarkersRequest(markers=(marker,)), version)

    mark("late", epoch=producer.epoch, coordinator_epoch=0, version=2, transaction_version=2)
    mark("old", epoch=producer.epoch - 1, coordinator_epoch=0, version=1)
    mark("abort", epoch=producer.epoch, coordinator_epoch=3, version=1)
    producer.describe_producers(0)
    producer.read(0)
    mark("again", epoch=producer.epoch, coordinator_epoch=3, version=1)
    mark("zombie coordinator", epoch=producer.epoch, coordinator_epoch=2, version=1)
    producer.describe_producers(0)


CONVERSATIONS: dict[str, Callable[[Talk], None]] = {
    "transactions of version 1": version_one,
    "transactions of version 2": version_two,
    "fencing of transactions": fencing,
    "bad requests of transactions": bad_requests,
    "offsets in transactions": offsets,
    "offsets of members in transactions": offsets_of_members,
    "offsets in transactions, of a topic that goes": offsets_of_a_topic_that_goes,
    "markers": markers,
}
