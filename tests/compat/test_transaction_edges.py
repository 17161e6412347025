"""Transactions where a counter or a segment ends: the last epochs of a producer id, and a marker as the last batch.

Epochs are used up after 32,766 transactions; here the coordinator's own log is told that they are, and the broker is
killed and reads it. The names of the bugs in others that these cases come from: KAFKA-18660 (an overflow that answers
with the wrong producer), KAFKA-19367 (a beginner in a transaction of the last epoch), redpanda#13639 (a marker that is
compacted away, and a reader that waits below it for ever).
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.admin.producers import TransactionDescription
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing.process import BrokerProcess
from strandline.transactions.transaction import COMPLETE_COMMIT, EPOCH_MAX
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.record_batch import Record, build_batch, headers_in
from strandline.wire.records.transaction_log import TransactionLogValue, encode_key, encode_value
from tests.client.reading import create, run
from tests.compat.clients.interface import eventually
from tests.compat.injected import (
    END_TXN,
    INIT_PRODUCER_ID,
    PARTITIONS,
    Strandline,
    Worker,
    hidden_answer,
    judge,
    proxied,
)
from tests.compat.server import STRANDLINE, PrivateServer, compat_target
from tests.compat.wire import WireClient
from tests.frame_proxy import Act, Fault

pytestmark = pytest.mark.skipif(
    compat_target() != STRANDLINE, reason="it writes and looks at files of Strandline"
)

STATE = "__transaction_state"
# The epoch with which a producer can still write, and no other can follow.
LAST_EPOCH = EPOCH_MAX - 1
KEYS = 4
TRANSACTIONS = 40


def known(bootstrap: str, name: str) -> TransactionDescription:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return admin.describe_transactions([name])[name]


def write_state(bootstrap: str, name: str, producer_id: int, epoch: int) -> None:
    """Into the coordinator's log, past the coordinator; the broker reads it when it starts again."""
    now_ms = int(time.time() * 1000)
    value = TransactionLogValue(
        producer_id=producer_id,
        previous_producer_id=producer_id,
        producer_epoch=epoch,
        transaction_timeout_ms=60_000,
        transaction_status=COMPLETE_COMMIT,
        transaction_partitions=(),
        transaction_last_update_timestamp_ms=now_ms,
        transaction_start_timestamp_ms=now_ms,
        client_transaction_version=2,
    )
    batch = build_batch([Record(0, now_ms, encode_key(name), encode_value(value, 1))])
    data = TopicProduceData(name=STATE, partition_data=(PartitionProduceData(index=0, records=batch),))
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=60_000, topic_data=(data,))
    with WireClient(bootstrap, client_id="__admin_client") as client:
        answer = client.call(request, 12)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_open", [False, True], ids=["at-an-end", "at-a-beginning"])
def test_used_up_epochs_give_another_producer_id(
    is_open: bool, private_server: PrivateServer, topic: str
) -> None:
    """The answer that has the new id is lost, so it has to be given again."""
    with proxied(private_server, **{"transaction.state.log.num.partitions": "1"}) as (broker, proxy):
        assert isinstance(broker, BrokerProcess)
        bootstrap = f"127.0.0.1:{proxy.port}"
        run(create(bootstrap, topic, partitions=PARTITIONS))
        worker = Worker(partial(Strandline, bootstrap, topic), topic)
        worker.restart()
        assert worker.transact(is_commit=True)
        first = known(bootstrap, topic).producer_id
        write_state(bootstrap, topic, first, LAST_EPOCH - 1)
        broker.kill()
        broker.start()
        worker.restart()
        assert known(bootstrap, topic).epoch == LAST_EPOCH
        opened = worker.open()
        if is_open:
            fault = Fault(act=Act.LOSE_ANSWER, api_key=INIT_PRODUCER_ID)
            proxy.inject(fault)
            worker.restart()
        else:
            fault = Fault(act=Act.LOSE_ANSWER, api_key=END_TXN)
            proxy.inject(fault)
            worker.end(opened, is_commit=True)
            answer = hidden_answer(fault, EndTxnRequest)
            assert (answer.producer_id != first, answer.producer_epoch) == (True, 0)
        assert fault.has_struck
        now = known(bootstrap, topic)
        assert now.producer_id != first
        assert 0 <= now.epoch < 10
        for is_commit in (True, False, True):
            assert worker.transact(is_commit=is_commit)
        worker.close()
        judge(bootstrap, worker, topic)


def markers_at_ends(directory: Path) -> int:
    """Returns the number of segments that end with a marker, without the last segment."""
    count = 0
    for path in sorted(directory.glob("*.log"))[:-1]:
        headers = [header for _, header in headers_in(path.read_bytes())]
        count += bool(headers) and headers[-1].is_control
    return count


def read(bootstrap: str, topic: str) -> list[tuple[bytes | None, int]]:
    """Keys and numbers up to the end, which a reader must be able to reach."""
    where = TopicPartition(topic, 0)
    found: list[tuple[bytes | None, int]] = []
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    with Consumer({"bootstrap.servers": bootstrap, **settings}) as reader:
        reader.assign([where])
        end = reader.end_offsets([where])[where]

        def position() -> int:
            found.extend((record.key, int(record.value or b"")) for record in reader.poll(0.2))
            return reader.position(where)

        eventually(position, lambda reached: reached >= end)
    return found


def test_a_marker_at_the_end_of_a_segment_is_not_waited_for_when_it_is_compacted_away(
    private_server: PrivateServer, topic: str
) -> None:
    configs = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "delete_retention_ms": "0"}
    # Room for a batch of one record and its marker, and no more.
    configs |= {"internal_segment_bytes": "170", "file_delete_delay_ms": "0"}
    with private_server({"log.cleaner.backoff.ms": "100"}) as broker:
        assert isinstance(broker, BrokerProcess)
        run(create(broker.bootstrap, topic, **configs))
        newest: dict[bytes, int] = {}
        directory = broker.data_dir / f"{topic}-0"
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic, linger_ms=0) as producer:
            producer.init_transactions()
            for number in range(TRANSACTIONS):
                key = b"k%d" % (number % KEYS)
                producer.begin_transaction()
                producer.send(topic, b"%d" % number, key, partition=0)
                if number % 3 == 1:
                    producer.flush()
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
                    newest[key] = number
                if number == KEYS:
                    assert markers_at_ends(directory) >= KEYS - 1
        committed_count = sum(number % 3 != 1 for number in range(TRANSACTIONS))
        for _ in range(2):
            seen = eventually(lambda: read(broker.bootstrap, topic), lambda seen: len(seen) < committed_count)
            assert dict(seen) == newest
            assert all(number % 3 != 1 for _, number in seen)
            broker.kill()
            broker.start()
