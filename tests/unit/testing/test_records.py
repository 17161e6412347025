"""Writing, reading and expecting records in tests, on a real broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from strandline.client.sync import Producer
from strandline.testing import BrokerProcess, NewRecord, broker, cluster, running_broker
from strandline.testing.expectations import RecordComparison


@pytest.fixture(scope="module")
def started() -> Iterator[BrokerProcess]:
    with running_broker() as process:
        yield process


def test_produced_records_can_be_consumed_and_expected(started: BrokerProcess) -> None:
    topic = started.create_topic(partitions=1)
    placed = started.produce(topic, [b"bytes", "text", {"n": 1}, ("key", "value"), ("gone", None)])
    assert [each.offset for each in placed] == [0, 1, 2, 3, 4]
    started.produce(
        topic, [NewRecord(key="k", value="v", headers=(("h", b"1"),), timestamp_ms=int(time.time()) * 1000)]
    )
    records = started.expect(
        topic,
        [
            b"bytes",
            b"text",
            {"n": 1},
            ("key", "value"),
            ("gone", None),
            lambda record: record.headers == (("h", b"1"),),
        ],
    )
    assert records == started.consume(topic)
    assert [record.value for record in started.consume(topic, 2)] == [b"bytes", b"text"]


def test_records_that_come_later_are_waited_for(started: BrokerProcess) -> None:
    topic = started.create_topic()
    with ThreadPoolExecutor(1) as thread:
        expecting = thread.submit(started.expect, topic, ["a", "b"], within=30)
        started.produce(topic, ["a"])
        started.produce(topic, ["b"])
        assert [record.value for record in expecting.result()] == [b"a", b"b"]


def test_a_topic_that_is_made_later_is_waited_for_and_not_made(started: BrokerProcess) -> None:
    with pytest.raises(AssertionError, match=r"topic never-made does not exist after 0\.2 s"):
        started.expect("never-made", ["x"], within=0.2)
    with pytest.raises(TimeoutError, match="topic never-made does not exist"):
        started.consume("never-made", within=0.2)
    with ThreadPoolExecutor(1) as thread:
        expecting = thread.submit(started.expect, "made-later", ["x"], within=30)
        started.produce("made-later", ["x"])
        assert len(expecting.result()) == 1


def test_the_failure_shows_what_was_there_instead(started: BrokerProcess) -> None:
    topic = started.create_topic()
    started.produce(topic, ["a", ("k", "x")])
    with pytest.raises(AssertionError) as failure:
        started.expect(topic, ["a", "b"], within=30)
    assert str(failure.value).splitlines() == [
        f"topic {topic} does not hold the 2 expected records:",
        "  0:0  'a'",
        "+ 0:1  key 'k'  'x'  (not expected)",
        "- 'b'  (missing)",
    ]
    with pytest.raises(AssertionError, match=r"within 0\.1 s: 1 are missing"):
        started.expect(topic, ["a", "x", "late"], within=0.1)
    with pytest.raises(TimeoutError, match=r"has 2 records after 0\.1 s, and not 3:\n  0:0  'a'"):
        started.consume(topic, 3, within=0.1)


def test_an_unexpected_record_fails_at_once(started: BrokerProcess) -> None:
    topic = started.create_topic()
    started.produce(topic, ["wrong"])
    began = time.monotonic()
    with pytest.raises(AssertionError, match="not expected"):
        started.expect(topic, ["right"], within=300)
    assert time.monotonic() - began < 60


def test_a_record_too_many_is_found_also_if_it_comes_in_the_quiet_time(started: BrokerProcess) -> None:
    topic = started.create_topic()
    started.produce(topic, ["a", "a"])
    with pytest.raises(AssertionError, match=r"\+ 0:1  'a'  \(not expected\)"):
        started.expect(topic, ["a"], within=30)
    other = started.create_topic()
    started.produce(other, ["a"])
    with ThreadPoolExecutor(1) as thread:
        expecting = thread.submit(started.expect, other, ["a"], within=30, quiet=30)
        started.produce(other, ["b"])
        with pytest.raises(AssertionError, match="not expected"):
            expecting.result()


def test_several_partitions_are_compared_in_any_order_and_one_in_its_own(started: BrokerProcess) -> None:
    wide, narrow = started.create_topic(partitions=3), started.create_topic()
    for topic in (wide, narrow):
        started.produce(topic, [NewRecord(value=str(n), partition=0) for n in range(3)])
    assert [r.value for r in started.expect(wide, ["2", "0", "1"])] == [b"2", b"0", b"1"]
    with pytest.raises(AssertionError):
        started.expect(narrow, ["2", "0", "1"])
    started.expect(narrow, ["2", "0", "1"], in_order=False)
    with pytest.raises(AssertionError):
        started.expect(wide, ["2", "0", "1"], in_order=True)


def test_only_committed_records_count(started: BrokerProcess) -> None:
    topic = started.create_topic()
    with Producer({**started.client_settings, "transactional.id": "tx-of-test"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush()
        assert started.consume(topic) == []
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"committed")
        producer.commit_transaction()
    started.expect(topic, ["committed"])
    assert [record.value for record in started.consume(topic)] == [b"committed"]


def test_an_embedded_broker_has_them_as_coroutines() -> None:
    async def main() -> None:
        async with broker() as b:
            topic = await b.create_topic(configs={"retention.ms": "-1"})
            await b.produce(topic, ["a"])
            assert [record.value for record in await b.expect(topic, ["a"])] == [b"a"]
            assert len(await b.consume(topic)) == 1

    asyncio.run(main())


def test_a_cluster_that_is_not_in_sync_says_what_is_missing_and_its_end_takes_no_time() -> None:
    with cluster(nodes=3) as c:
        topic = c.create_topic(partitions=1, replication_factor=3)
        c.wait_until_in_sync()
        c.node(3).kill()
        c.produce(topic, ["x"])
        with pytest.raises(TimeoutError, match=rf"2 of 3 brokers are there(\n.*)*{topic}-0: in sync are \["):
            c.wait_until_in_sync(within=1)
        c.node(3).start()
        c.wait_until_in_sync()
        c.expect(topic, ["x"])
        pids = [node.pid for node in c.nodes]
        home = c.home
        began = time.monotonic()
    assert time.monotonic() - began < 20, "in order it takes 2.3 s on a quiet machine, and this 0.1 s"
    assert len(pids) == 3
    assert not home.exists()
    assert [node.exit_status for node in c.nodes] == [None, None, None], "nobody is left that died by itself"


def test_long_reports_are_cut_in_the_middle() -> None:
    text = RecordComparison("t", [str(number) for number in range(1000)], [], True).report(1, exists=True)
    assert text.count("\n") < 60
    assert "'0'  (missing)" in text
    assert "'999'  (missing)" in text
    assert "… 960 more rows …" in text


def test_the_leader_of_a_partition_is_found_and_a_partition_that_is_not_there_is_an_error(
    started: BrokerProcess,
) -> None:
    topic = started.create_topic(partitions=2)
    assert started.leader_id(topic, 1) == 1
    with pytest.raises(ValueError, match=r"has the partitions \[0, 1\], and not 2"):
        started.leader_id(topic, 2)
