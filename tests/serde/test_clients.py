"""Our clients with serializers of a registry: look-ups, headers, failures, dead letters."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import (
    ConnectionFailedError,
    Consumer,
    DeadLetters,
    KafkaTimeoutError,
    Producer,
    SerializationError,
    sync,
)
from strandline.serde import (
    AvroDeserializer,
    AvroSerializer,
    LookupNeeded,
    RegistryRefused,
    SchemaRegistry,
    UnknownSchema,
    ValueDoesNotFit,
)
from strandline.testing import BrokerProcess, RegistryProcess
from tests.serde import confluent
from tests.serde.failing_web import FailingWeb

USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
USER_2 = (
    '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":"int","default":-1}]}'
)
QUICK = {"max.retries": 0, "retries.wait.ms": 10}


@pytest.fixture
def web() -> FailingWeb:
    return FailingWeb()


@pytest.fixture
def registry(strandline_registry: RegistryProcess, web: FailingWeb) -> SchemaRegistry:
    return SchemaRegistry({"url": strandline_registry.url, **QUICK}, web=web)


def reading(broker: BrokerProcess, deserializer: Any) -> dict[str, Any]:
    return {"bootstrap_servers": broker.bootstrap, "value_deserializer": deserializer}


async def read(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []
    while len(records) < count:
        records += await consumer.poll(5.0)
    return records


@pytest.mark.parametrize("framing", ["prefix", "header"])
async def test_keys_and_values_go_through_asyncio_clients(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, web: FailingWeb, topic: str, framing: str
) -> None:
    async with Producer(
        bootstrap_servers=strandline_broker.bootstrap,
        key_serializer=AvroSerializer(registry, '"long"', framing=framing),
        value_serializer=AvroSerializer(registry, USER, framing=framing),
    ) as producer:
        for number in range(50):
            await producer.send(topic, {"name": f"n{number}"}, number, headers={"mine": b"1"})
        await producer.flush()
    assert len(web.requests) == 2, "one registration for keys and one for values"
    async with Consumer(
        bootstrap_servers=strandline_broker.bootstrap,
        key_deserializer=AvroDeserializer(registry),
        value_deserializer=AvroDeserializer(registry),
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        records = await read(consumer, 50)
    assert [(each.key, each.value) for each in records] == [(n, {"name": f"n{n}"}) for n in range(50)]
    assert {each.headers[0] for each in records} == {("mine", b"1")}
    assert {len(each.headers) for each in records} == {1 if framing == "prefix" else 3}
    assert len(web.requests) == 4, "one look-up for each schema"


def test_blocking_clients_do_the_same(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, topic: str
) -> None:
    serializer = AvroSerializer(registry, USER, framing="header")
    with sync.Producer(
        bootstrap_servers=strandline_broker.bootstrap, value_serializer=serializer
    ) as producer:
        assert producer.send(topic, {"name": "Ada"}).result().offset == 0
        producer.send(topic, None, b"tombstone")
    with sync.Consumer(**reading(strandline_broker, AvroDeserializer(registry))) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < 2:
            found += consumer.poll(5.0)
    assert [each.value for each in found] == [{"name": "Ada"}, None]


async def test_a_value_that_does_not_fit_names_its_field(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, topic: str
) -> None:
    serializer = AvroSerializer(registry, USER_2)
    async with Producer(
        bootstrap_servers=strandline_broker.bootstrap, value_serializer=serializer
    ) as producer:
        with pytest.raises(SerializationError, match=r"User\.age is 'old', and not int") as raised:
            await producer.send(topic, {"name": "Ada", "age": "old"})
        assert isinstance(raised.value.__cause__, ValueDoesNotFit)
        for wrong in (None, 5):
            with pytest.raises(SerializationError, match=rf"User\.name is {wrong}, and not string"):
                await producer.send(topic, {"name": wrong, "age": 5})
        await producer.send_and_wait(topic, {"name": "Ada", "age": 5})


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1])
@pytest.mark.parametrize(
    ("kind", "wrap"),
    [
        ('"int"', lambda n: n),
        ('["null","int"]', lambda n: n),
        ('["string","int"]', lambda n: n),
        ('{"type":"array","items":"int"}', lambda n: [0, n]),
        ('{"type":"map","values":"int"}', lambda n: {"k": n}),
        ('{"type":"array","items":["null","R"]}', lambda n: [None, {"f": [], "i": n}]),
    ],
)
def test_an_int_of_more_than_32_bits_does_not_fit(
    registry: SchemaRegistry, topic: str, kind: str, wrap: Any, number: int
) -> None:
    fields = f'{{"name":"f","type":{kind}}},{{"name":"i","type":"int"}}'
    schema = f'{{"type":"record","name":"R","fields":[{fields}]}}'
    serializer = AvroSerializer(registry, schema)
    assert serializer.serialize(topic, {"f": wrap((1 << 31) - 1), "i": 0})
    with pytest.raises(ValueDoesNotFit, match=r"R\.[fi].* is -?\d+, and an int has 32 bits"):
        serializer.serialize(topic, {"f": wrap(number), "i": 0})


async def test_send_nowait_says_that_a_schema_is_missing(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, topic: str
) -> None:
    serializer = AvroSerializer(registry, USER)
    async with Producer(
        bootstrap_servers=strandline_broker.bootstrap, value_serializer=serializer
    ) as producer:
        with pytest.raises(KafkaTimeoutError, match="await send"):
            producer.send_nowait(topic, {"name": "Ada"})
        await producer.send_and_wait(topic, {"name": "Ada"})
        await producer.send_nowait(topic, {"name": "Bo"})


async def test_an_interceptor_sees_a_record_once_though_it_waited_for_its_schema(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, topic: str
) -> None:
    seen = []

    class Interceptor:
        def on_send(self, *record: Any) -> Any:
            seen.append(record[1])
            return record

    async with Producer(
        bootstrap_servers=strandline_broker.bootstrap,
        value_serializer=AvroSerializer(registry, USER),
        interceptor_classes=[Interceptor()],
    ) as producer:
        await producer.send_and_wait(topic, {"name": "Ada"})
    assert seen == [{"name": "Ada"}]


async def test_a_schema_that_is_not_compatible_is_refused_and_none_is_registered_unasked(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, topic: str
) -> None:
    async def send(serializer: Any, value: Any) -> None:
        async with Producer(
            bootstrap_servers=strandline_broker.bootstrap, value_serializer=serializer
        ) as producer:
            await producer.send_and_wait(topic, value)

    unregistered = AvroSerializer(registry, USER, auto_register_schemas=False)
    with pytest.raises(SerializationError) as raised:
        await send(unregistered, {"name": "Ada"})
    assert isinstance(raised.value.__cause__, UnknownSchema)
    await send(AvroSerializer(registry, USER), {"name": "Ada"})
    await send(unregistered, {"name": "Ada"})
    with pytest.raises(SerializationError) as raised:
        await send(AvroSerializer(registry, USER.replace("string", "int")), {"name": 1})
    assert isinstance(raised.value.__cause__, RegistryRefused)
    assert raised.value.__cause__.status == 409


async def test_the_latest_schema_is_taken_and_looked_for_again(
    strandline_registry: RegistryProcess, web: FailingWeb, topic: str
) -> None:
    settings = {"url": strandline_registry.url, **QUICK, "cache.latest.ttl.sec": 0.2}
    registry = SchemaRegistry(settings, web=web)
    first = await registry.register(f"{topic}-value", _schema(USER))
    serializer = AvroSerializer(registry, use_latest_version=True)

    async def written_id() -> int:
        while True:
            try:
                data = serializer.serialize_record(topic, {"name": "Ada"}, [])
            except LookupNeeded as needed:
                await needed.look_up()
            else:
                return int.from_bytes(data[1:5], "big")

    assert await written_id() == first.id
    second = await registry.register(f"{topic}-value", _schema(USER_2))
    await asyncio.sleep(0.25)
    assert await written_id() == second.id
    web.is_away = True
    await asyncio.sleep(0.25)
    assert await written_id() == second.id, "while the registry is away the last known one counts"


def _schema(text: str) -> Any:
    from strandline.serde import Schema

    return Schema(text)


async def test_a_consumer_waits_for_a_registry_and_loses_nothing(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, web: FailingWeb, topic: str
) -> None:
    async with Producer(
        bootstrap_servers=strandline_broker.bootstrap, value_serializer=AvroSerializer(registry, USER)
    ) as producer:
        for number in range(10):
            await producer.send(topic, {"name": f"n{number}"})
    web.is_away = True
    async with Consumer(**reading(strandline_broker, AvroDeserializer(registry))) as consumer:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek_to_beginning()
        with pytest.raises(ConnectionFailedError, match="schema registry"):
            await read(consumer, 1)
        assert await consumer.position(where) == 0
        web.is_away = False
        assert [each.value["name"] for each in await read(consumer, 10)] == [f"n{n}" for n in range(10)]


async def test_a_producer_says_that_the_registry_is_away_and_goes_on_when_it_is_back(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, web: FailingWeb, topic: str
) -> None:
    serializer = AvroSerializer(registry, USER)
    web.is_away = True
    async with Producer(
        bootstrap_servers=strandline_broker.bootstrap, value_serializer=serializer
    ) as producer:
        with pytest.raises(ConnectionFailedError, match="schema registry"):
            await producer.send(topic, {"name": "Ada"})
        web.is_away = False
        await producer.send_and_wait(topic, {"name": "Ada"})
        web.is_away = True
        await producer.send_and_wait(topic, {"name": "Bo"})  # the schema is known


async def test_records_before_one_without_a_schema_are_read_and_that_one_is_an_error(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, topic: str
) -> None:
    good = await asyncio.to_thread(AvroSerializer(registry, USER).serialize, topic, {"name": "Ada"})
    bad = [b"\0\0\x0f\xff\xffxx", b"no frame", good + b"x"]
    async with Producer(bootstrap_servers=strandline_broker.bootstrap) as producer:
        for value in [good, *bad, good]:
            await producer.send(topic, value)
    told = []
    async with Consumer(**reading(strandline_broker, AvroDeserializer(registry))) as consumer:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek_to_beginning()
        assert [each.offset for each in await read(consumer, 1)] == [0]
        for offset in (1, 2, 3):
            with pytest.raises(SerializationError, match=f"at offset {offset}") as raised:
                await read(consumer, 1)
            told.append(raised.value.__cause__.kind)  # type: ignore[union-attr]
            consumer.seek(where, offset + 1)
        assert [each.offset for each in await read(consumer, 1)] == [4]
    assert told == ["unknown-schema", "not-framed", "undecodable"]


async def test_dead_letters_are_for_data_and_not_for_a_registry_that_is_away(
    strandline_broker: BrokerProcess, registry: SchemaRegistry, web: FailingWeb, topic: str
) -> None:
    good = await asyncio.to_thread(AvroSerializer(registry, USER).serialize, topic, {"name": "Ada"})
    async with Producer(bootstrap_servers=strandline_broker.bootstrap) as producer:
        for value in (good, b"no frame", good):
            await producer.send(topic, value)
    web.is_away = True
    handled: list[Any] = []

    async def handle(record: Any) -> None:
        handled.append(record.value)

    async with DeadLetters(
        [topic],
        handle,
        bootstrap_servers=strandline_broker.bootstrap,
        group_id=f"{topic}-group",
        value_deserializer=AvroDeserializer(registry),
    ) as letters:
        running = asyncio.create_task(letters.run())
        while len(web.requests) < 3:  # the registration, and two attempts to read
            await asyncio.sleep(0.05)
        assert not handled
        assert letters.counters.values.get("dead-total", 0) == 0
        web.is_away = False
        async with asyncio.timeout(20):
            while len(handled) < 2:
                await asyncio.sleep(0.05)
        letters.stop()
        await running
        assert letters.counters.values.get("dead-total", 0) == 1
    assert handled == [{"name": "Ada"}] * 2


async def test_confluents_bytes_are_read_by_our_consumer(
    strandline_broker: BrokerProcess, strandline_registry: RegistryProcess, topic: str
) -> None:
    from confluent_kafka import Producer as TheirProducer

    headers: list[Any] = []
    with confluent.SchemaRegistryClient({"url": strandline_registry.url}) as client:
        serializer = confluent.AvroSerializer(client, USER, conf=confluent.framing(True))
        data = serializer({"name": "Ada"}, confluent.context(topic, headers))
    producer = TheirProducer({"bootstrap.servers": strandline_broker.bootstrap})
    producer.produce(topic, data, headers=headers)
    producer.flush()
    deserializer = AvroDeserializer(strandline_registry.url, USER_2)
    async with Consumer(**reading(strandline_broker, deserializer)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        assert (await read(consumer, 1))[0].value == {"name": "Ada", "age": -1}
