"""What clients do under each fault, with their own defaults: the table of docs/guides/faults.md.

`python -m tests.compat.fault_behaviour` prints it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import confluent_kafka
import kafka
from aiokafka import AIOKafkaProducer

from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import BrokerProcess, running_broker
from tests.compat.clients.java_client import JavaClient
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
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
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
    """What became of one record whose first Produce request was struck."""
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


def table_in(text: str) -> dict[str, dict[str, str]]:
    """The table of the guide: for each client, what it says of each fault."""
    rows = [
        [cell.strip() for cell in line.strip("|\n ").split("|")]
        for line in text.partition("<!-- behaviour -->")[2].partition("<!-- end -->")[0].splitlines()
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
        columns = {name: column(broker, write) for name, write in PYTHON_CLIENTS.items()}
        columns["java"] = column(broker, java(worker))
    print(f"| fault | {' | '.join(columns)} |")
    print(f"| --- |{' --- |' * len(columns)}")
    for fault in FAULTS:
        print(f"| `{fault}` | {' | '.join(found[fault] for found in columns.values())} |")


if __name__ == "__main__":
    main()
