"""The blocking clients do what the asyncio ones do, from any thread and in a forked child."""

from __future__ import annotations

import os
import threading
import traceback

import pytest

from strandline.client.errors import (
    ClosedError,
    ConnectionFailedError,
    IllegalStateError,
    KafkaError,
    SerializationError,
    UnknownTopicError,
)
from strandline.client.sync import Admin, Consumer, Producer, TopicPartition
from tests.client.reading import read_all


def test_the_blocking_producer_keeps_order_from_one_thread_and_flush_means_delivered(
    bootstrap: str, topic: str
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    with Producer(bootstrap_servers=bootstrap) as producer:
        results = [producer.send(topic, b"%d" % number) for number in range(20_000)]
        producer.flush()
        assert all(result.done() for result in results)
        assert [result.result().offset for result in results] == list(range(20_000))
        assert producer.metrics()["record-send-total"] == 20_000
    assert [each.value for each in read_all(bootstrap, topic, count=20_000)] == [
        b"%d" % n for n in range(20_000)
    ]


def test_many_threads_may_use_one_producer(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=2)

        def work(name: int) -> None:
            for number in range(500):
                producer.send(topic, b"%d" % number, b"%d" % name)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    seen = read_all(bootstrap, topic, partitions=2, count=4000)
    for name in range(8):
        assert [each.value for each in seen if each.key == b"%d" % name] == [b"%d" % n for n in range(500)]


def test_errors_are_raised_at_once_or_in_the_result_and_the_producer_goes_on(
    bootstrap: str, topic: str
) -> None:
    called = threading.Event()
    with (
        Admin(bootstrap_servers=bootstrap) as admin,
        Producer(bootstrap_servers=bootstrap, max_block_ms=3000) as producer,
    ):
        with pytest.raises(UnknownTopicError):
            producer.send(topic, b"x").result(60)
        admin.create_topic(topic, partitions=1)
        with pytest.raises(SerializationError):
            producer.send(topic, "text")
        bad = producer.send(topic, b"x", partition=1)
        good = producer.send(topic, b"bytes")
        good.add_done_callback(lambda _: called.set())
        assert isinstance(bad.exception(60), UnknownTopicError)
        assert good.exception(60) is None
        assert called.wait(60)
    with pytest.raises(ClosedError):
        producer.send(topic, b"x")
    producer.close()
    with pytest.raises(ConnectionFailedError):
        Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=100)


def test_an_unknown_topic_of_one_thread_keeps_no_other_waiting(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    producer = Producer(bootstrap_servers=bootstrap, max_block_ms=90_000)
    unknown = [producer.send(f"{topic}-nope", b"x") for _ in range(4)]
    assert producer.send(topic, b"x").result(60).offset == 0
    producer.close(0)
    assert all(isinstance(result.exception(60), KafkaError) for result in unknown)


def test_the_error_of_a_callback_goes_to_the_loop_and_the_others_are_called(
    bootstrap: str, topic: str
) -> None:
    told: list[object] = []
    called = threading.Event()
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=1)
        loop = producer._thread._loop
        loop.set_exception_handler(lambda _, context: told.append(context.get("exception")))
        try:
            sent = producer.send(topic, b"x")
            sent.add_done_callback(lambda _: 1 // 0)
            sent.add_done_callback(lambda _: called.set())
            assert called.wait(60)
        finally:
            loop.set_exception_handler(None)
    assert [type(each) for each in told] == [ZeroDivisionError]


def test_a_blocking_consumer_reads_what_a_blocking_producer_wrote(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=1)
        for number in range(10):
            producer.send(topic, b"%d" % number)
        producer.flush()
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found = []
        for record in consumer:
            found.append(record.value)
            if len(found) == 10:
                break
    assert found == [b"%d" % number for number in range(10)]


def test_breaking_out_of_an_iteration_commits_only_what_was_given(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=1)
        for number in range(10):
            producer.send(topic, b"%d" % number)
        producer.flush()
    given: list[bytes] = []
    for stop_at in (3, 7, 10):
        with Consumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=f"group-{topic}"
        ) as consumer:
            consumer.subscribe([topic])
            for record in consumer:
                given.append(record.value)
                if len(given) == stop_at:
                    break
    assert given == [b"%d" % number for number in range(10)]


def test_a_forked_child_makes_its_own_client_and_cannot_use_its_parents(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=1)
        producer.send(topic, b"parent").result(10)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with pytest.raises(IllegalStateError, match="fork"):
                    producer.send(topic, b"x")
                with Producer(bootstrap_servers=bootstrap) as own:
                    own.send(topic, b"child").result(10)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        producer.send(topic, b"parent again").result(10)
    assert [each.value for each in read_all(bootstrap, topic, count=3)] == [
        b"parent",
        b"child",
        b"parent again",
    ]


def test_a_commit_has_every_record_that_was_sent_before_it_or_raises(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic, max_block_ms=5000) as producer:
        producer.init_transactions()
        for _ in range(5):
            producer.begin_transaction()
            for number in range(50):
                producer.send(topic, b"%d" % number)
            producer.commit_transaction()
        producer.begin_transaction()
        producer.send(topic, b"x", partition=5)  # there is none, so it is not taken
        with pytest.raises(UnknownTopicError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.commit_transaction()
    committed = [each.value for each in read_all(bootstrap, topic, count=250)]
    assert committed == [b"%d" % number for number in range(50)] * 5


class CommitsWhatIsTaken:
    """A listener as Java's users write it: it commits before partitions go, in the thread that polls."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.told: list[tuple[str, list[TopicPartition], int]] = []

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.told.append(("assigned", partitions, threading.get_ident()))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._consumer.commit()
        self.told.append(("revoked", partitions, threading.get_ident()))


def test_a_rebalance_listener_runs_in_the_polling_thread_and_may_use_the_consumer(
    bootstrap: str, topic: str
) -> None:
    where = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=1)
        producer.send(topic, b"x").result(30)
        with Consumer(
            bootstrap_servers=bootstrap,
            group_id=f"group-{topic}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            listener = CommitsWhatIsTaken(consumer)
            consumer.subscribe([topic], listener=listener)
            while not consumer.poll(1.0):
                pass
            consumer.unsubscribe()
            assert listener.told == [
                ("assigned", [where], threading.get_ident()),
                ("revoked", [where], threading.get_ident()),
            ]
        assert admin.list_group_offsets(f"group-{topic}", [where])[where].offset == 1


def test_the_error_of_a_rebalance_listener_comes_out_of_the_poll(bootstrap: str, topic: str) -> None:
    class Fails:
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            raise ZeroDivisionError

    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    with Consumer(bootstrap_servers=bootstrap, group_id=f"group-{topic}") as consumer:
        consumer.subscribe([topic], listener=Fails())  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError):
            consumer.poll(60.0)


def test_commits_that_are_not_waited_for_and_tables_have_results(bootstrap: str, topic: str) -> None:
    import pyarrow

    where = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=1)
        sent = producer.send_table(topic, pyarrow.table({"value": [b"a", b"b"]}))
        sent.result(30)
        assert (sent.done(), sent.rows) == (True, 2)
        with Consumer(bootstrap_servers=bootstrap, group_id=f"group-{topic}") as consumer:
            consumer.assign([where])
            consumer.commit_async({where: 2}).result(30)
            assert consumer.committed([where])[where].offset == 2
