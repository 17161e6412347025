"""Several instances on one topic: forwarding, taking over, fencing, kills under load."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import BrokerProcess, RegistryProcess, running_broker, running_registry
from tests.registry.conftest import Rest


def schema(number: int) -> dict[str, Any]:
    return {"type": "record", "name": f"R{number}", "fields": []}


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with running_broker() as broker:
        yield broker


@pytest.fixture
def topic(subject: str) -> str:
    return f"_{subject}"


@pytest.fixture
def one(broker: BrokerProcess, topic: str, tmp_path: Path) -> RegistryProcess:
    """An instance that is not started yet, on a topic of this test's own."""
    return RegistryProcess(broker.bootstrap, tmp_path / "one.log", "--topic", topic, "--group", topic)


@pytest.fixture
def two(
    broker: BrokerProcess, topic: str, tmp_path: Path
) -> Iterator[tuple[RegistryProcess, RegistryProcess]]:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                running_registry(
                    broker.bootstrap, tmp_path / f"{name}.log", "--topic", topic, "--group", topic
                )
            )
            for name in ("first", "second")
        )
        yield first, second


def test_writes_go_to_one_instance_and_reads_to_any(two: tuple[RegistryProcess, RegistryProcess]) -> None:
    first, second = Rest(two[0].url), Rest(two[1].url)
    for number in range(6):
        asked, other = (first, second) if number % 2 else (second, first)
        status, made = asked.register("s", schema(number), schemaType="AVRO")
        if status != 200:  # the second version of another name is no successor of the first
            assert made["error_code"] == 40901
            asked("PUT", "/config/s", {"compatibility": "NONE"})
            status, made = asked.register("s", schema(number))
        assert (status, made["id"]) == (200, number + 1)
        # The other instance has not read it yet, perhaps: it looks before it says no.
        assert other("GET", f"/schemas/ids/{made['id']}")[0] == 200
        assert other("GET", "/subjects/s/versions/latest")[1]["id"] == made["id"]


def test_an_instance_takes_over_from_a_writer_that_is_gone(
    two: tuple[RegistryProcess, RegistryProcess],
) -> None:
    first, second = Rest(two[0].url), Rest(two[1].url)
    assert first.register("a", schema(1))[1]["id"] == 1
    two[0].kill()
    assert second.register("b", schema(2))[1]["id"] == 2
    two[0].start()
    assert first.register("c", schema(3))[1]["id"] == 3
    two[1].kill()
    assert first.register("d", schema(4))[1]["id"] == 4
    two[1].start()


def test_a_writer_that_was_paused_is_fenced_when_it_wakes(
    two: tuple[RegistryProcess, RegistryProcess],
) -> None:
    first, second = Rest(two[0].url), Rest(two[1].url)
    assert first.register("a", schema(1))[1]["id"] == 1
    assert second.register("b", schema(2))[1]["id"] == 2  # forwarded
    os.kill(two[0].pid, signal.SIGSTOP)
    try:
        assert second.register("c", schema(3))[1]["id"] == 3  # no response comes: taken over
    finally:
        os.kill(two[0].pid, signal.SIGCONT)
    # The first one still takes itself for the writer, and its next id would be 3. A request that another instance sent
    # to it meanwhile must not make it take the right back, or the two fence each other again and again.
    late = {"schema": json.dumps(schema(9))}
    for _ in range(2):
        status, refusal = first("POST", "/subjects/late/versions", late, {"X-Forward": "true"})
        assert (status, refusal["error_code"]) == (500, 50004)
    assert first.register("d", schema(4))[1]["id"] == 4
    for rest in (first, second):
        assert [rest("GET", f"/subjects/{name}/versions/1")[1]["id"] for name in "abcd"] == [1, 2, 3, 4]


def test_ids_stay_unique_and_none_is_lost_when_instances_are_killed_under_load(
    two: tuple[RegistryProcess, RegistryProcess],
) -> None:
    acknowledged: dict[str, int] = {}
    stop = threading.Event()

    def register(worker: int) -> None:
        number = 0
        while not stop.is_set() and number < 400:
            number += 1
            subject = f"w{worker}-{number}"
            for _ in range(20):
                try:
                    rest = Rest(two[(worker + number) % 2].url)
                    status, made = rest.register(subject, schema(worker * 1000 + number))
                except OSError:
                    stop.wait(0.1)
                    continue
                if status == 200:
                    acknowledged[subject] = made["id"]
                    break
                assert status == 500, made
                stop.wait(0.05)

    workers = [threading.Thread(target=register, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for turn in range(3):
        stop.wait(0.7)
        two[turn % 2].kill()
        two[turn % 2].start()
    stop.wait(0.5)
    stop.set()
    for worker in workers:
        worker.join(60)
    assert len(acknowledged) > 20
    assert len(set(acknowledged.values())) == len(acknowledged)
    for instance in two:
        rest = Rest(instance.url)
        for subject, id in acknowledged.items():
            assert rest("GET", f"/subjects/{subject}/versions/1")[1]["id"] == id


def test_records_of_an_aborted_transaction_are_overwritten(
    broker: BrokerProcess, one: RegistryProcess, topic: str
) -> None:
    one.start()
    assert Rest(one.url).register("kept", schema(1))[1]["id"] == 1
    one.kill()
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id="another") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for subject, version in (("kept", 1), ("ghost", 1)):
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            value = {"subject": subject, "version": version, "id": 9, "schema": '"int"', "deleted": False}
            producer.send(topic, json.dumps(value).encode(), json.dumps(key, separators=(",", ":")).encode())
        producer.flush()
        producer.abort_transaction()
    one.start()
    rest = Rest(one.url)
    assert rest("GET", "/subjects") == (200, ["kept"])
    assert rest.register("next", schema(2))[1]["id"] == 2
    one.stop()
    seen: dict[str, Any] = {}
    with Consumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", group_id="uncommitted"
    ) as consumer:
        consumer.subscribe([topic])
        while '"next"' not in str(list(seen)):
            for record in consumer.poll(5.0):
                seen[record.key.decode()] = record.value
    ghosts = [value for key, value in seen.items() if '"ghost"' in key]
    assert ghosts == [None]
    kept = next(value for key, value in seen.items() if '"kept"' in key)
    assert json.loads(kept)["id"] == 1


def test_records_that_no_registry_wrote_are_skipped(
    broker: BrokerProcess, one: RegistryProcess, topic: str
) -> None:
    one.start()
    Rest(one.url).register("s", schema(1))
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for key in (b"", b"{", b'{"keytype":"NEW","magic":7}', b'{"keytype":"SCHEMA","magic":1}'):
            producer.send(topic, b'{"id":"x"}', key)
        producer.flush()
    assert Rest(one.url).register("t", schema(2))[0] == 200
    assert Rest(one.url)("GET", "/subjects") == (200, ["s", "t"])
    one.stop()


def test_a_topic_that_would_lose_schemas_is_refused(broker: BrokerProcess, tmp_path: Path) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic("_two", partitions=2, configs={"cleanup.policy": "compact"})
        admin.create_topic("_deleting", partitions=1, configs={"cleanup.policy": "delete"})
    for topic, said in (("_two", "2 partitions"), ("_deleting", "cleanup.policy=delete")):
        with pytest.raises(RuntimeError, match=said):
            RegistryProcess(broker.bootstrap, tmp_path / "log", "--topic", topic).start()


def test_a_registry_whose_topic_is_deleted_stops_with_that_error(
    broker: BrokerProcess, one: RegistryProcess, topic: str
) -> None:
    one.start()
    try:
        Rest(one.url).register("s", schema(1))
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.delete_topics([topic])
        assert one.wait(60) == 1
        assert f"{topic} cannot be read any more: it was deleted" in one.log_text
    finally:
        one.kill()
