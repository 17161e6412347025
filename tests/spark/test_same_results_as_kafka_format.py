"""One list of queries through both formats: Spark's own `kafka` and `strandline` give the same rows and columns."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from strandline.client.errors import KafkaError
from strandline.client.sync import Admin, Producer
from strandline.spark.options import OptionError, read_options
from strandline.spark.source import BatchReader
from tests.oracle.fetch import SPARK_KAFKA_JARS
from tests.oracle.require import require
from tests.record_times import recent_ms

pytestmark = pytest.mark.oracle

BASE_MS = recent_ms()
# How many records the keys and numbers below put into the partitions of the orders.
IN_PARTITIONS = (58, 57, 85)
ORDERS = sum(IN_PARTITIONS)
STAMPED = 5
SENT_IN_TRANSACTIONS = 20


class Data(NamedTuple):
    """Topics with something of everything in them."""

    bootstrap: str
    orders: str
    stamped: str
    transactions: str
    empty: str


@pytest.fixture(scope="module")
def data(broker: Any) -> Data:
    made = Data(broker.bootstrap, "same-orders", "same-stamped", "same-transactions", "same-empty")
    with Admin(bootstrap_servers=made.bootstrap) as admin:
        admin.create_topic(made.orders, partitions=3)
        admin.create_topic(made.stamped, partitions=1, configs={"message.timestamp.type": "LogAppendTime"})
        admin.create_topic(made.transactions, partitions=2)
        admin.create_topic(made.empty, partitions=2)
    for start, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        with Producer(bootstrap_servers=made.bootstrap, compression_type=codec) as producer:
            for number in range(start * 40, start * 40 + 40):
                key = None if number % 7 == 0 else f"key-{number % 11}".encode()
                value = None if number % 13 == 0 else f"value-{number}".encode() * (number % 5)
                headers = [("n", b"%d" % number), ("n", None)] if number % 3 == 0 else None
                place = number % 3 if key is None else None
                producer.send(made.orders, value, key, place, BASE_MS + number * 1000, headers)
            producer.send(made.stamped, b"stamped", codec.encode())
    with Producer(bootstrap_servers=made.bootstrap, transactional_id="same") as producer:
        producer.init_transactions()
        for attempt in range(4):
            producer.begin_transaction()
            for number in range(5):
                producer.send(made.transactions, b"%d-%d" % (attempt, number), None, number % 2)
            producer.flush()  # an abort drops records that were not sent yet
            if attempt % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    return made


def offsets(topic: str, *numbers: int) -> str:
    return json.dumps({topic: {str(at): number for at, number in enumerate(numbers)}})


class Query(NamedTuple):
    """Options beside the servers, where {name} stands for a topic of the data, and how many rows they must give."""

    rows: int
    options: dict[str, str]


QUERIES: dict[str, Query] = {
    "several topics, with headers": Query(
        ORDERS + STAMPED, {"subscribe": "{orders},{stamped}, {empty}", "includeHeaders": "true"}
    ),
    "a pattern that matches in the middle": Query(ORDERS, {"subscribePattern": "ame-order"}),
    "a pattern in Java's words": Query(
        ORDERS + SENT_IN_TRANSACTIONS,
        {"subscribePattern": r"^\Qsame-\E(?<what>[\p{Lower}]{2,})\p{Alpha}*s$"},
    ),
    "partitions": Query(IN_PARTITIONS[0] + IN_PARTITIONS[2], {"assign": '{"{orders}":[0,2]}'}),
    "a partition that is not there": Query(IN_PARTITIONS[0], {"assign": '{"{orders}":[0,7]}'}),
    "offsets": Query(
        7 + IN_PARTITIONS[1] + 1,
        {
            "subscribe": "{orders}",
            "startingOffsets": '{"{orders}":{"0":3,"1":-2,"2":20}}',
            "endingOffsets": '{"{orders}":{"0":10,"1":-1,"2":21}}',
        },
    ),
    "times": Query(
        100,
        {
            "subscribe": "{orders}",
            "startingTimestamp": str(BASE_MS + 50_000),
            "endingTimestamp": str(BASE_MS + 150_000),
        },
    ),
    "times by partition": Query(
        183,
        {
            "subscribe": "{orders}",
            "startingOffsetsByTimestamp": offsets("{orders}", BASE_MS + 9000, BASE_MS + 50_500, 0),
            "endingOffsetsByTimestamp": offsets("{orders}", *(BASE_MS + 10**9,) * 3),
        },
    ),
    "a time that no record has, from the end": Query(
        0,
        {
            "subscribe": "{orders}",
            "startingTimestamp": str(BASE_MS + 10**9),
            "startingOffsetsByTimestampStrategy": "latest",
        },
    ),
    "many partitions": Query(ORDERS, {"subscribe": "{orders}", "minPartitions": "10"}),
    "everything of transactions": Query(SENT_IN_TRANSACTIONS, {"subscribe": "{transactions}"}),
    "what was committed, in ranges": Query(
        SENT_IN_TRANSACTIONS // 2,
        {
            "subscribe": "{transactions}",
            "kafka.isolation.level": "read_committed",
            "maxRecordsPerPartition": "3",
        },
    ),
}

# Options that both formats refuse, and a word that our refusal must contain.
REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "nothing to read": ({}, "subscribePattern"),
    "two ways to say what": ({"subscribe": "{orders}", "assign": '{"{orders}":[0]}'}, "exactly one"),
    "no topic": ({"subscribe": " , "}, "subscribe"),
    "assign that is no JSON": ({"assign": "orders"}, "JSON"),
    "latest as a start": ({"subscribe": "{orders}", "startingOffsets": "latest"}, "startingOffsets"),
    "earliest as an end": ({"subscribe": "{orders}", "endingOffsets": "earliest"}, "endingOffsets"),
    "-1 as a start": (
        {"subscribe": "{orders}", "startingOffsets": '{"{orders}":{"0":-1,"1":0,"2":0}}'},
        "startingOffsets",
    ),
    "offsets of some partitions": (
        {"subscribe": "{orders}", "startingOffsets": '{"{orders}":{"0":3}}'},
        "every partition",
    ),
    "a time that no record has": (
        {"subscribe": "{orders}", "startingTimestamp": str(BASE_MS + 10**9)},
        "startingOffsetsByTimestampStrategy",
    ),
    "-3 as a start": (
        {"subscribe": "{orders}", "startingOffsets": '{"{orders}":{"0":-3,"1":0,"2":0}}'},
        "below -2",
    ),
    "a topic to assign that is not there": ({"assign": '{"same-nowhere":[0]}'}, "option assign"),
    "no partitions": ({"subscribe": "{orders}", "minPartitions": "0"}, "minPartitions"),
    "a reset policy": ({"subscribe": "{orders}", "kafka.auto.offset.reset": "latest"}, "startingOffsets"),
    "a deserializer": ({"subscribe": "{orders}", "kafka.value.deserializer": "json"}, "cast"),
    "an unknown topic": ({"subscribe": "same-nowhere"}, "same-nowhere"),
}


def filled(data: Data, options: dict[str, str]) -> dict[str, str]:
    found = {"kafka.bootstrap.servers": data.bootstrap}
    for name, value in options.items():
        for field in Data._fields:
            value = value.replace("{" + field + "}", getattr(data, field))
        found[name] = value
    return found


def frame(spark: Any, source: str, data: Data, options: dict[str, str]) -> Any:
    return spark.read.format(source).options(**filled(data, options)).load()


def contents(df: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (
            row.topic,
            row.partition,
            row.offset,
            *(tuple(map(tuple, each)) if isinstance(each, list) else each for each in row),
        )
        for row in df.collect()
    )


@pytest.mark.parametrize("name", QUERIES)
def test_both_formats_give_the_same(spark: Any, data: Data, name: str) -> None:
    require(SPARK_KAFKA_JARS)
    query = QUERIES[name]
    theirs = frame(spark, "kafka", data, query.options)
    ours = frame(spark, "strandline", data, query.options)
    assert ours.schema == theirs.schema
    rows = contents(ours)
    assert len(rows) == query.rows
    assert rows == contents(theirs)


@pytest.mark.parametrize("name", REFUSED)
def test_both_formats_refuse_and_our_error_has_the_remedy(spark: Any, data: Data, name: str) -> None:
    require(SPARK_KAFKA_JARS)
    options, word = REFUSED[name]
    with pytest.raises(Exception):  # noqa: B017 (Spark's classes differ from case to case)
        frame(spark, "kafka", data, {**options, "fetchOffset.numRetries": "1"}).collect()
    with pytest.raises((OptionError, KafkaError), match=word):
        BatchReader(read_options(filled(data, options), is_stream=False)).partitions()


def test_a_refusal_comes_out_of_spark(spark: Any, data: Data) -> None:
    with pytest.raises(Exception, match="did you mean startingOffsets"):
        frame(spark, "strandline", data, {"subscribe": "same", "startingOffset": "earliest"}).collect()
