"""Finds out how clients behave under each fault, with their own defaults: the tables of docs/guides/faults.md.

`python -m tests.compat.fault_behaviour` prints the table of writes, with `commits` that of commits.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Final

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import BrokerProcess, running_broker
from strandline.testing.faults import BrokerFault
from tests.compat.clients.interface import Refused
from tests.compat.clients.java_client import JavaClient
from tests.compat.clients.kafka_python_client import KafkaConsumer, KafkaProducer
from tests.compat.records import Sample
from tests.oracle.java_worker import JavaWorker

FAULTS: Final[dict[str, dict[str, Any]]] = {
    "error NOT_LEADER_OR_FOLLOWER": {"kind": "error", "error": "NOT_LEADER_OR_FOLLOWER"},
    "error MESSAGE_TOO_LARGE": {"kind": "error", "error": "MESSAGE_TOO_LARGE"},
    "error REQUEST_TIMED_OUT, applied": {"kind": "error", "error": "REQUEST_TIMED_OUT", "applied": True},
    "drop_request": {"kind": "drop_request"},
    "drop_response": {"kind": "drop_response"},
    "disconnect": {"kind": "disconnect"},
    "disconnect, applied": {"kind": "disconnect", "applied": True},
    "delay": {"kind": "delay", "ms": 200},
    "black_hole": {"kind": "black_hole"},
    "throttle": {"kind": "throttle", "ms": 200},
    "tear": {"kind": "tear", "bytes": 7},
    "barrier": {"kind": "barrier"},
}
_SILENT: Final = ("drop_request", "drop_response", "black_hole")
_numbers = count()


def librdkafka(broker: BrokerProcess, topic: str) -> None:
    producer = confluent_kafka.Producer(broker.librdkafka_settings)
    errors: list[Any] = []
    producer.produce(topic, b"x", callback=lambda error, _: errors.append(error))
    producer.flush(60)
    if errors[0] is not None:
        raise confluent_kafka.KafkaException(errors[0])


def aiokafka(broker: BrokerProcess, topic: str) -> None:
    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            await producer.send_and_wait(topic, b"x")

    asyncio.run(main())


def kafka_python(broker: BrokerProcess, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    try:
        producer.send(topic, b"x").get(60)
    finally:
        producer.close(10)


def strandline(broker: BrokerProcess, topic: str) -> None:
    with Producer(broker.client_settings) as producer:
        producer.send(topic, b"x").result(60)


def java(worker: JavaWorker) -> Callable[[BrokerProcess, str], None]:
    def write(broker: BrokerProcess, topic: str) -> None:
        JavaClient(broker.bootstrap, worker).write(topic, [Sample(value=b"x")], idempotent=True)

    return write


PYTHON_CLIENTS: Final = {
    "librdkafka": librdkafka,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
    "strandline": strandline,
}


def behaviour(broker: BrokerProcess, write: Callable[[BrokerProcess, str], None], fault: str) -> str:
    """Returns the fate of one record whose first Produce request was struck."""
    topic = f"behaviour-{next(_numbers)}"
    with Admin(broker.client_settings) as admin:
        admin.create_topic(topic, partitions=1)
    options = dict(FAULTS[fault])
    kind = options.pop("kind")
    outcome = ["acknowledged"]

    def run() -> None:
        try:
            write(broker, topic)
        except Exception:
            outcome[0] = "refused"

    with getattr(broker.faults, kind)(api="Produce", topic=topic, **options) as struck:
        writing = threading.Thread(target=run)
        writing.start()
        struck.wait_fired(timeout=30)
        if kind in _SILENT:
            struck.clear()
        elif kind == "barrier":
            struck.release()
        writing.join(60)
        assert not writing.is_alive(), f"{fault}: still not done after 60 s"
    with Consumer(broker.client_settings) as consumer:
        copies = next(iter(consumer.end_offsets([(topic, 0)]).values()))
    return f"{outcome[0]}, {('not written', 'written once')[copies] if copies < 2 else 'written twice'}"


def column(broker: BrokerProcess, write: Callable[[BrokerProcess, str], None]) -> dict[str, str]:
    return {fault: behaviour(broker, write, fault) for fault in FAULTS}


# Commits

COMMIT_FAULTS: Final[dict[str, dict[str, Any]]] = {
    "error NOT_COORDINATOR": {"kind": "error", "error": "NOT_COORDINATOR"},
    "error COORDINATOR_LOAD_IN_PROGRESS": {"kind": "error", "error": "COORDINATOR_LOAD_IN_PROGRESS"},
    "error REBALANCE_IN_PROGRESS": {"kind": "error", "error": "REBALANCE_IN_PROGRESS"},
    "error UNKNOWN_MEMBER_ID": {"kind": "error", "error": "UNKNOWN_MEMBER_ID"},
    "drop_request": {"kind": "drop_request"},
    "drop_response": {"kind": "drop_response"},
    "disconnect": {"kind": "disconnect"},
    "disconnect, applied": {"kind": "disconnect", "applied": True},
    "tear": {"kind": "tear", "bytes": 7},
}
Ready = Callable[[], None]


def librdkafka_commit(broker: BrokerProcess, topic: str, ready: Ready) -> None:
    settings = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({**broker.librdkafka_settings, **settings})
    consumer.subscribe([topic])
    try:
        while (message := consumer.poll(1.0)) is None or message.error() is not None:
            pass
        ready()
        consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


def aiokafka_commit(broker: BrokerProcess, topic: str, ready: Ready) -> None:
    async def main() -> None:
        async with AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            await consumer.getone()
            ready()
            await consumer.commit()

    asyncio.run(main())


def kafka_python_commit(broker: BrokerProcess, topic: str, ready: Ready) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        next(consumer)
        ready()
        consumer.commit()
    finally:
        consumer.close()


def strandline_commit(broker: BrokerProcess, topic: str, ready: Ready) -> None:
    settings = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with Consumer({**broker.client_settings, **settings}) as consumer:
        consumer.subscribe([topic])
        while not consumer.poll(1.0):
            pass
        ready()
        consumer.commit()


def java_commit(worker: JavaWorker) -> Callable[[BrokerProcess, str, Ready], None]:
    settings = {"group.id": "", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}

    def commit(broker: BrokerProcess, topic: str, ready: Ready) -> None:
        client = JavaClient(broker.bootstrap, worker)
        assert client.call("begin_in_group", topic=topic, settings={**settings, "group.id": topic}) == 1
        ready()
        client.call("commit_in_group", topic=topic, settings={})

    return commit


COMMITTERS: Final = {
    "librdkafka": librdkafka_commit,
    "aiokafka": aiokafka_commit,
    "kafka-python": kafka_python_commit,
    "strandline": strandline_commit,
}


def commit_behaviour(
    broker: BrokerProcess, run: Callable[[BrokerProcess, str, Ready], None], fault: str
) -> str:
    """Returns the fate of the commit of one record whose first OffsetCommit request was struck."""
    topic = f"commit-{next(_numbers)}"
    with Producer(broker.client_settings) as producer:
        producer.send(topic, b"x").result(30)
    options = dict(COMMIT_FAULTS[fault])
    kind = options.pop("kind")
    struck: list[BrokerFault] = []
    outcome = ["succeeds"]

    def ready() -> None:
        struck.append(getattr(broker.faults, kind)(api="OffsetCommit", group=topic, **options))

    def commit() -> None:
        try:
            run(broker, topic, ready)
        except Refused as error:  # by Java, with the exception's class in front
            thrown = str(error).partition(": ")[2].partition(":")[0]
            outcome[0] = f"raises {thrown.rpartition('.')[2]}"
        except Exception as error:
            outcome[0] = f"raises {type(error).__name__}"

    committing = threading.Thread(target=commit)
    committing.start()
    deadline = time.monotonic() + 60
    while not struck or not struck[0].fired:
        assert time.monotonic() < deadline, f"{fault}: no commit within 60 s"
        time.sleep(0.01)
    if kind in _SILENT:
        struck[0].clear()
    committing.join(60)
    assert not committing.is_alive(), f"{fault}: still not done after 60 s"
    struck[0].clear()
    with Admin(broker.client_settings) as admin:
        found = any(offset.offset == 1 for offset in admin.list_group_offsets(topic).values() if offset)
    return f"{outcome[0]}, {'committed' if found else 'not committed'}"


def commit_column(broker: BrokerProcess, run: Callable[[BrokerProcess, str, Ready], None]) -> dict[str, str]:
    return {fault: commit_behaviour(broker, run, fault) for fault in COMMIT_FAULTS}


def table_in(text: str, name: str) -> dict[str, dict[str, str]]:
    """Returns a table of the guide: the behaviour of each client under each fault."""
    rows = [
        [cell.strip() for cell in line.strip("|\n ").split("|")]
        for line in text.partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0].splitlines()
        if line.startswith("|") and "---" not in line
    ]
    head, *body = rows
    return {
        client: {row[0].strip("`"): row[number] for row in body}
        for number, client in enumerate(head)
        if number
    }


def main() -> None:
    from tests.compat.conftest import HERE
    from tests.oracle.fetch import JAVA, KAFKA_JARS
    from tests.oracle.require import require

    with (
        running_broker() as broker,
        JavaWorker(
            java=require(JAVA), jars=require(KAFKA_JARS), source=HERE / "java" / "Clients.java"
        ) as worker,
    ):
        if "commits" in sys.argv:
            committers = {**COMMITTERS, "java": java_commit(worker)}
            show(COMMIT_FAULTS, {name: commit_column(broker, run) for name, run in committers.items()})
            return
        columns = {name: column(broker, write) for name, write in PYTHON_CLIENTS.items()}
        columns["java"] = column(broker, java(worker))
    show(FAULTS, columns)


def show(faults: Iterable[str], columns: Mapping[str, Mapping[str, str]]) -> None:
    print(f"| fault | {' | '.join(columns)} |")
    print(f"| --- |{' --- |' * len(columns)}")
    for fault in faults:
        print(f"| `{fault}` | {' | '.join(found[fault] for found in columns.values())} |")


if __name__ == "__main__":
    main()
