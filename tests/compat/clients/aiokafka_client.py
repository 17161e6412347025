"""aiokafka. Each call runs an event loop of its own, from connecting to closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.compat.clients.interface import (
    CALL_TIMEOUT_S,
    REQUEST_BYTES_MAX,
    ClusterDescription,
    PartitionDescription,
    Refused,
)
from tests.compat.records import Received, Sample, Written

T = TypeVar("T")


class AiokafkaClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @asynccontextmanager
    async def producer(self, **settings: Any) -> AsyncIterator[AIOKafkaProducer]:
        producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, **settings)
        await producer.start()
        try:
            yield producer
        finally:
            await producer.stop()

    @asynccontextmanager
    async def consumer(self, **settings: Any) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            enable_auto_commit=False,
            **{"auto_offset_reset": "none", **settings},
        )
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    def can_write(self, sample: Sample) -> bool:
        """It refuses by itself a record without key and value."""
        return not (sample.key is None and sample.value is None)

    def write(
        self,
        topic: str,
        samples: Sequence[Sample],
        *,
        partition: int | None = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[Written]:
        async def call() -> list[Written]:
            async with self.producer(
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                max_request_size=REQUEST_BYTES_MAX,
                linger_ms=1,
            ) as producer:
                futures = [
                    await producer.send(
                        topic,
                        value=sample.value,
                        key=sample.key,
                        headers=list(sample.headers),
                        partition=partition,
                        timestamp_ms=sample.timestamp_ms,
                    )
                    for sample in samples
                ]
                metadata = await asyncio.gather(*futures)
            # Without acknowledgements there is no metadata, so no offset.
            return [
                Written(partition=each.partition, offset=each.offset) for each in metadata if each is not None
            ]

        return _run(call())

    def read(self, topic: str, *, partition: int = 0, offset: int = 0, count: int) -> list[Received]:
        async def call() -> list[Received]:
            place = TopicPartition(topic, partition)
            received: list[Received] = []
            async with self.consumer() as consumer:
                consumer.assign([place])
                consumer.seek(place, offset)
                while len(received) < count:
                    polled = await consumer.getmany(timeout_ms=1000, max_records=count - len(received))
                    received.extend(received_from(record) for record in polled.get(place, ()))
            return received

        return _run(call())

    def beginning_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        async def call() -> dict[int, int]:
            async with self.consumer() as consumer:
                answers = await consumer.beginning_offsets(
                    [TopicPartition(topic, each) for each in partitions]
                )
            return {place.partition: offset for place, offset in answers.items()}

        return _run(call())

    def end_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        async def call() -> dict[int, int]:
            async with self.consumer() as consumer:
                answers = await consumer.end_offsets([TopicPartition(topic, each) for each in partitions])
            return {place.partition: offset for place, offset in answers.items()}

        return _run(call())

    def offsets_for_times(self, topic: str, timestamps_ms: Mapping[int, int]) -> dict[int, int | None]:
        async def call() -> dict[int, int | None]:
            asked = {
                TopicPartition(topic, partition): time_ms for partition, time_ms in timestamps_ms.items()
            }
            async with self.consumer() as consumer:
                answers = await consumer.offsets_for_times(asked)
            return {place.partition: found.offset if found else None for place, found in answers.items()}

        return _run(call())

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        async def call() -> None:
            new = NewTopic(topic, partitions, replication_factor, topic_configs=dict(configs or {}))
            async with self.admin() as admin:
                response = await admin.create_topics([new])
            _check(response.topic_errors)

        _run(call())

    def delete_topic(self, topic: str) -> None:
        async def call() -> None:
            async with self.admin() as admin:
                response = await admin.delete_topics([topic])
            _check(response.topic_error_codes)

        _run(call())

    def list_topics(self) -> set[str]:
        async def call() -> set[str]:
            async with self.admin() as admin:
                return set(await admin.list_topics())

        return _run(call())

    def describe_topic(self, topic: str) -> dict[int, PartitionDescription]:
        async def call() -> dict[int, PartitionDescription]:
            async with self.admin() as admin:
                (described,) = await admin.describe_topics([topic])
            _check([(topic, described["error_code"])])
            return {
                partition["partition"]: PartitionDescription(
                    leader=partition["leader"],
                    replicas=tuple(partition["replicas"]),
                    in_sync=tuple(partition["isr"]),
                )
                for partition in described["partitions"]
            }

        return _run(call())

    def create_partitions(self, topic: str, *, total: int) -> None:
        async def call() -> None:
            async with self.admin() as admin:
                await admin.create_partitions({topic: NewPartitions(total)})

        _run(call())

    def describe_topic_configs(self, topic: str) -> dict[str, str | None]:
        return _run(self._describe_configs(ConfigResourceType.TOPIC, topic))

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """The old AlterConfigs: what it does not name returns to its default."""

        async def call() -> None:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
            async with self.admin() as admin:
                (response,) = await admin.alter_configs([resource])
            _check([(topic, code, message) for code, message, *_ in response.resources])

        _run(call())

    def describe_broker_configs(self, broker: int) -> dict[str, str | None]:
        return _run(self._describe_configs(ConfigResourceType.BROKER, str(broker)))

    def delete_records(self, topic: str, before_offsets: Mapping[int, int]) -> dict[int, int]:
        async def call() -> dict[int, int]:
            asked = {
                TopicPartition(topic, partition): RecordsToDelete(offset)
                for partition, offset in before_offsets.items()
            }
            async with self.admin() as admin:
                answers = await admin.delete_records(asked)
            return {place.partition: low_watermark for place, low_watermark in answers.items()}

        return _run(call())

    def describe_cluster(self) -> ClusterDescription:
        async def call() -> ClusterDescription:
            async with self.admin() as admin:
                described = await admin.describe_cluster()
            return ClusterDescription(
                cluster_id=described["cluster_id"],
                controller=described["controller_id"],
                brokers={node["node_id"]: f"{node['host']}:{node['port']}" for node in described["brokers"]},
            )

        return _run(call())

    async def _describe_configs(self, kind: ConfigResourceType, name: str) -> dict[str, str | None]:
        async with self.admin() as admin:
            (response,) = await admin.describe_configs([ConfigResource(kind, name)])
        ((code, message, _, _, entries, *_),) = response.resources
        _check([(name, code, message)])
        return {entry[0]: entry[1] for entry in entries}


def received_from(record: Any) -> Received:
    return Received(
        offset=record.offset,
        sample=Sample(
            key=record.key, value=record.value, headers=tuple(record.headers), timestamp_ms=record.timestamp
        ),
    )


def _check(errors: Sequence[tuple[Any, ...]]) -> None:
    """Responses name a subject, an error code and, in newer versions, a message."""
    for subject, code, *message in errors:
        if code:
            raise Refused(code, f"{subject} {message}")


def _run(call: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(call, CALL_TIMEOUT_S)

    try:
        return asyncio.run(bounded())
    except KafkaError as error:
        raise Refused(getattr(error, "errno", -1), str(error)) from error
