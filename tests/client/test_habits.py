"""Code as users of other clients write it, and the view that an editor or a test double has of these clients."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import create_autospec

import pytest

import strandline.client
import strandline.client.sync
from strandline.client import (
    ConfigChange,
    ConfigError,
    ConfigResource,
    ConfigSource,
    ConsumerRecord,
    GroupError,
    InvalidTopicError,
    NewTopic,
    TopicPartition,
)
from strandline.client.config.config import ClientConfig
from strandline.client.sync import Admin, Consumer, DeadLetters, Producer
from strandline.testing import broker, running_broker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker(num_partitions=1, auto_create_topics_enable=False) as server:
        with Admin(bootstrap_servers=server.bootstrap) as admin:
            admin.create_topic("orders")
        yield server.bootstrap


def test_records_of_settings_are_positional_and_values_may_be_numbers(bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("t", 4, 1, {"retention.ms": 1000, "preallocate": False})])
        topic = ConfigResource.topic("t")
        admin.alter_configs({topic: [ConfigChange("segment.ms", 7)]})
        entries = admin.describe_configs([topic])[topic]
        assert (entries["retention.ms"].value, entries["segment.ms"].value) == ("1000", "7")
        assert entries["retention.ms"].source is ConfigSource.TOPIC
        assert "ConfigSource.TOPIC" in repr(entries["retention.ms"])
        assert len(admin.describe_topics(["t"])["t"].partitions) == 4
        with pytest.raises(TypeError, match=r"retention\.ms must be text, a number or a flag"):
            admin.create_topic("no", configs={"retention.ms": []})  # type: ignore[dict-item]


def test_a_text_where_a_list_is_meant_is_refused(bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        for call in (admin.delete_topics, admin.describe_topics, admin.delete_groups, admin.describe_groups):
            with pytest.raises(TypeError, match=r"write \['orders'\]"):
                call("orders")
        assert "orders" in admin.list_topics()
    with pytest.raises(TypeError, match="topics must be a list"):
        DeadLetters("orders", print, bootstrap_servers=bootstrap, group_id="g")


def test_a_consumer_takes_topics_first_and_headers_are_text(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("orders", b"v", headers=[("trace", b"1"), (b"odd\xff", b"2")])
        producer.flush()
        with Consumer(
            "orders", bootstrap_servers=bootstrap, group_id="h", auto_offset_reset="earliest"
        ) as one:
            record: ConsumerRecord[bytes, bytes] = one.poll(None)[0]
            assert dict(record.headers)["trace"] == b"1"
            producer.send("orders", b"again", headers=record.headers)
            producer.flush()
            again = one.poll(None)[0]
            assert again.headers == record.headers, "names that are not UTF-8 survive"
    with pytest.raises(ConfigError, match="mapping by Kafka's names"):
        Producer("orders", bootstrap_servers=bootstrap)  # type: ignore[arg-type]


def test_poll_without_a_time_does_not_spin(bootstrap: str) -> None:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_end()
        consumer.poll(0)
        began = time.monotonic()
        assert consumer.poll() == []
        assert time.monotonic() - began > 0.5


def test_members_have_a_name_and_offsets_of_a_group_in_use_cannot_be_altered(bootstrap: str) -> None:
    with (
        Admin(bootstrap_servers=bootstrap) as admin,
        Consumer("orders", bootstrap_servers=bootstrap, group_id="named") as consumer,
    ):
        until = time.monotonic() + 20
        while not consumer.assignment() and time.monotonic() < until:
            consumer.poll(0.1)
        member = admin.describe_groups(["named"])["named"].members[0]
        assert member.client_id == "strandline-consumer"
        with pytest.raises(GroupError, match=r"group named has members.*stop its consumers first"):
            admin.alter_group_offsets("named", {TopicPartition("orders", 0): 0})


def test_a_listener_with_none_of_the_methods_is_refused(bootstrap: str) -> None:
    class Wrong:
        def on_assigned(self, partitions: object) -> None: ...

    with (
        Consumer(bootstrap_servers=bootstrap, group_id="l") as consumer,
        pytest.raises(TypeError, match="none of them; it has on_assigned"),
    ):
        consumer.subscribe(["orders"], listener=Wrong())  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["localhost", ["localhost"], "localhost,other:1"])
def test_a_server_without_a_port_has_kafkas(given: Any) -> None:
    assert ClientConfig.admin(bootstrap_servers=given).bootstrap[0] == ("localhost", 9092)


def test_a_topic_name_that_is_wrong_says_why(bootstrap: str) -> None:
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        pytest.raises(InvalidTopicError, match="other than"),
    ):
        producer.send("e 1", b"x")


def test_the_blocking_classes_are_classes() -> None:
    assert list(inspect.signature(Consumer.poll).parameters) == ["self", "timeout", "max_records"]
    assert list(inspect.signature(Admin.create_topic).parameters)[:2] == ["self", "name"]
    double = create_autospec(Consumer)
    double.return_value.poll.return_value = []
    assert double(bootstrap_servers="x").poll(1.0) == []
    with pytest.raises(TypeError):
        double.return_value.poll(1, 2, 3, 4)
    assert "Creates topics" in inspect.getdoc(Admin.create_topics)  # type: ignore[operator]


@pytest.mark.parametrize("module", [strandline.client, strandline.client.sync])
def test_everything_that_is_exported_is_there_and_says_what_it_is(module: Any) -> None:
    without = []
    for name in module.__all__:
        value = getattr(module, name)
        if not inspect.getdoc(value):
            without.append(name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            members = {key: inspect.getattr_static(value, key) for key in dir(value) if key[0] != "_"}
            without += [
                f"{name}.{key}"
                for key, member in members.items()
                if (inspect.isfunction(member) or isinstance(member, property)) and not inspect.getdoc(member)
            ]
    assert without == []


def test_blocking_dead_letters_handle_in_the_thread_that_runs(bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic("bills")
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in (b"good", b"bad"):
            producer.send("bills", value)
    threads: set[int] = set()

    def handle(record: ConsumerRecord) -> None:
        threads.add(threading.get_ident())
        if record.value == b"bad":
            letters.stop()
            raise ValueError("bad")

    letters = DeadLetters(
        ["bills"], handle, bootstrap_servers=bootstrap, group_id="bills", backoff_ms=[], fatal=[ValueError]
    )
    with letters:
        letters.run()
        assert threads == {threading.get_ident()}
        assert letters.metrics()["dead-total"] == 1
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("bills.dlq", 0)])
        assert consumer.poll(10)[0].value == b"bad"
    with pytest.raises(TypeError, match="plain function"):
        DeadLetters(["bills"], asyncio.sleep, bootstrap_servers=bootstrap, group_id="g")


def test_without_the_extra_the_message_names_it(bootstrap: str) -> None:
    script = f"""
import sys
sys.modules["pyarrow"] = None
from strandline.client import TopicPartition
from strandline.client.sync import Consumer, Producer
for call in (
    lambda: Producer(bootstrap_servers={bootstrap!r}).send_table("orders", None),
    lambda: Consumer(bootstrap_servers={bootstrap!r}).poll_table(1),
):
    try:
        call()
    except ModuleNotFoundError as error:
        print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.count("pip install 'strandline[columnar]'") == 2, ran.stdout + ran.stderr


def test_python_m_strandline_is_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "strandline", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "0." in ran.stdout


def test_partitions_that_are_sought_together_are_fetched_together() -> None:
    """Each request costs a look at every partition: one for each seek would be slow with thousands of them."""

    async def main() -> None:
        async with (
            broker() as started,
            strandline.client.Producer(bootstrap_servers=started.bootstrap) as producer,
        ):
            async with strandline.client.Admin(bootstrap_servers=started.bootstrap) as admin:
                await admin.create_topic("t", partitions=3)
            for number in range(3):
                await producer.send_and_wait("t", b"%d" % number, partition=number)
            async with strandline.client.Consumer(bootstrap_servers=started.bootstrap) as consumer:
                partitions = sorted(await consumer.partitions_for("t"))
                consumer.assign(partitions)
                with started.faults.barrier("Fetch", topic="t", partition=2) as barrier:
                    for each in partitions:
                        consumer.seek(each, 0)
                    await barrier.await_held()
                    assert await consumer.poll(0.1) == []  # the others wait in the same request
                    barrier.release()
                    read: list[bytes | None] = []
                    while len(read) < 3:
                        read += [record.value for record in await consumer.poll(10)]
                assert sorted(read, key=str) == [b"0", b"1", b"2"]

    asyncio.run(asyncio.wait_for(main(), 60))
