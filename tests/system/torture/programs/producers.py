"""Small producers with one mistake each, and the same without it: `producers.py NAME [mended]`.

They write the ids from 0 to STRANDLINE_RECORDS to STRANDLINE_TOPIC and print a line for each that is acknowledged.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka

TOPIC = os.environ["STRANDLINE_TOPIC"]
RECORDS = int(os.environ["STRANDLINE_RECORDS"])
PACE_S = 0.02


def librdkafka(**settings: Any) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": os.environ["STRANDLINE_BOOTSTRAP"],
            "linger.ms": 0,
            "retry.backoff.ms": 50,
            "message.timeout.ms": 60_000,
            **settings,
        }
    )


def acknowledged(record_id: int) -> None:
    print(json.dumps({"id": record_id}), flush=True)


def value(record_id: int) -> bytes:
    return json.dumps({"id": record_id}).encode()


def one_by_one(producer: confluent_kafka.Producer, ignores_errors: bool = False) -> None:
    for record_id in range(RECORDS):
        outcome: list[Any] = []
        producer.produce(TOPIC, value(record_id), callback=lambda error, _, to=outcome: to.append(error))
        while not outcome:
            producer.poll(0.1)
        if outcome[0] is None or ignores_errors:
            acknowledged(record_id)
        else:
            print(f"{record_id}: {outcome[0]}", file=sys.stderr)
        time.sleep(PACE_S)


def many_at_once(producer: confluent_kafka.Producer) -> None:
    for record_id in range(RECORDS):
        producer.produce(
            TOPIC,
            value(record_id),
            callback=lambda error, _, number=record_id: None if error else acknowledged(number),
        )
        producer.poll(PACE_S)
    producer.flush(60)


IDEMPOTENT = {"enable.idempotence": True}


def does_not_retry(mended: bool) -> None:
    one_by_one(librdkafka(**(IDEMPOTENT if mended else {"acks": "all", "retries": 0})))


def asks_one_replica(mended: bool) -> None:
    one_by_one(librdkafka(**(IDEMPOTENT if mended else {"acks": "1"})))


def swallows_errors(mended: bool) -> None:
    one_by_one(librdkafka(**(IDEMPOTENT if mended else {"retries": 0})), ignores_errors=not mended)


def is_not_idempotent(mended: bool) -> None:
    one_by_one(librdkafka(**(IDEMPOTENT if mended else {"acks": "all"})))


def has_many_in_flight(mended: bool) -> None:
    many_at_once(librdkafka(**{"batch.num.messages": 1}, **(IDEMPOTENT if mended else {"acks": "all"})))


def goes_on_when_fenced(mended: bool) -> None:
    producer = transactional()
    record_id = 0
    while record_id < RECORDS:
        try:
            producer.begin_transaction()
            producer.produce(TOPIC, value(record_id))
            producer.commit_transaction(30)
        except confluent_kafka.KafkaException as error:
            print(f"{record_id}: {error}", file=sys.stderr)
            if (
                mended
            ):  # nothing of it is in the log: somebody else took the id, so take it back and do it again
                producer = transactional()
                continue
        acknowledged(record_id)
        record_id += 1
        time.sleep(PACE_S)


def drops_a_slow_commit(mended: bool) -> None:
    """A commit that is not over in time is to be asked for again; it has not failed."""
    producer = transactional()
    for record_id in range(RECORDS):
        producer.begin_transaction()
        producer.produce(TOPIC, value(record_id))
        if committed(producer, asks_again=mended):
            acknowledged(record_id)
        else:
            producer = transactional()
        time.sleep(PACE_S)


def committed(producer: confluent_kafka.Producer, asks_again: bool) -> bool:
    while True:
        try:
            producer.commit_transaction(0.2)
            return True
        except confluent_kafka.KafkaException as error:
            print(f"not committed: {error}", file=sys.stderr)
            if not (asks_again and error.args[0].retriable()):
                return False


def transactional() -> confluent_kafka.Producer:
    producer = librdkafka(**{"transactional.id": os.environ["STRANDLINE_TRANSACTIONAL_ID"]})
    producer.init_transactions(30)
    return producer


PROGRAMS: dict[str, Callable[[bool], None]] = {
    each.__name__: each
    for each in (
        does_not_retry,
        asks_one_replica,
        swallows_errors,
        is_not_idempotent,
        has_many_in_flight,
        goes_on_when_fenced,
        drops_a_slow_commit,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]("mended" in sys.argv)
