"""confluent-kafka (librdkafka)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compat.clients.interface import (
    CALL_TIMEOUT_S,
    REQUEST_BYTES_MAX,
    ClusterDescription,
    ErrorCode,
    PartitionDescription,
    Refused,
)
from tests.compat.records import Received, Sample, Written

# Errors that librdkafka names itself, and the broker's answer behind them.
_LOCAL_CODES = {
    KafkaError._UNKNOWN_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._AUTO_OFFSET_RESET: ErrorCode.OFFSET_OUT_OF_RANGE,
}

# Otherwise it writes to standard error past pytest's capture, for instance when a broker under test stops.
_LOGGER = logging.getLogger("librdkafka")

T = TypeVar("T")


class ConfluentKafkaClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        # Kept, because an AdminClient takes its unanswered calls with it when it is collected.
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "logger": _LOGGER})

    def producer(self, **settings: Any) -> Producer:
        return Producer(
            {"bootstrap.servers": self._bootstrap, "logger": _LOGGER, "linger.ms": 1, **_dotted(settings)}
        )

    @contextmanager
    def consumer(self, **settings: Any) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "logger": _LOGGER,
                "group.id": "never-joined",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                **_dotted(settings),
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()

    def can_write(self, sample: Sample) -> bool:
        return True

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
        producer = self.producer(
            compression_type=codec,
            acks=acks,
            enable_idempotence=idempotent,
            message_max_bytes=REQUEST_BYTES_MAX,
            message_timeout_ms=int(CALL_TIMEOUT_S * 1000),
            # All in one batch, however busy the machine is: what does not shrink by itself is sent uncompressed.
            linger_ms=1000,
        )
        reports: list[tuple[KafkaError | None, Message] | None] = [None] * len(samples)
        for index, sample in enumerate(samples):

            def delivered(error: KafkaError | None, message: Message, index: int = index) -> None:
                reports[index] = (error, message)

            place = {} if partition is None else {"partition": partition}
            producer.produce(
                topic,
                value=sample.value,
                key=sample.key,
                headers=list(sample.headers),
                timestamp=sample.timestamp_ms or 0,
                on_delivery=delivered,
                **place,
            )
            producer.poll(0)
        assert producer.flush(CALL_TIMEOUT_S) == 0, "records were left undelivered"
        written = []
        for report in reports:
            assert report is not None
            error, message = report
            if error is not None:
                raise _refused(error)
            written.append(Written(partition=message.partition(), offset=message.offset()))
        return written

    def read(self, topic: str, *, partition: int = 0, offset: int = 0, count: int) -> list[Received]:
        received: list[Received] = []
        deadline = time.monotonic() + CALL_TIMEOUT_S
        with self.consumer() as consumer:
            consumer.assign([TopicPartition(topic, partition, offset)])
            while len(received) < count:
                assert time.monotonic() < deadline, f"{len(received)} of {count} records came"
                for message in consumer.consume(count - len(received), timeout=1.0):
                    if message.error() is not None:
                        raise _refused(message.error())
                    received.append(received_from(message))
        return received

    def beginning_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return self._list_offsets(topic, partitions, OffsetSpec.earliest())

    def end_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return self._list_offsets(topic, partitions, OffsetSpec.latest())

    def offsets_for_times(self, topic: str, timestamps_ms: Mapping[int, int]) -> dict[int, int | None]:
        asked = [TopicPartition(topic, partition, time_ms) for partition, time_ms in timestamps_ms.items()]
        with self.consumer() as consumer:
            answers = consumer.offsets_for_times(asked, timeout=CALL_TIMEOUT_S)
        # librdkafka answers "the end" (-1) when no record is that young.
        return {answer.partition: answer.offset if answer.offset >= 0 else None for answer in answers}

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, config=dict(configs or {}))
        _result(self.admin.create_topics([new])[topic])

    def delete_topic(self, topic: str) -> None:
        _result(self.admin.delete_topics([topic])[topic])

    def list_topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=CALL_TIMEOUT_S).topics)

    def describe_topic(self, topic: str) -> dict[int, PartitionDescription]:
        described = _result(self.admin.describe_topics(TopicCollection([topic]))[topic])
        return {
            partition.id: PartitionDescription(
                leader=partition.leader.id,
                replicas=tuple(node.id for node in partition.replicas),
                in_sync=tuple(node.id for node in partition.isr),
            )
            for partition in described.partitions
        }

    def create_partitions(self, topic: str, *, total: int) -> None:
        _result(self.admin.create_partitions([NewPartitions(topic, total)])[topic])

    def describe_topic_configs(self, topic: str) -> dict[str, str | None]:
        return self._describe_configs(ConfigResource(ResourceType.TOPIC, topic))

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
        _result(self.admin.incremental_alter_configs([resource])[resource])

    def describe_broker_configs(self, broker: int) -> dict[str, str | None]:
        return self._describe_configs(ConfigResource(ResourceType.BROKER, str(broker)))

    def delete_records(self, topic: str, before_offsets: Mapping[int, int]) -> dict[int, int]:
        asked = [TopicPartition(topic, partition, offset) for partition, offset in before_offsets.items()]
        answers = self.admin.delete_records(asked)
        return {place.partition: _result(answer).low_watermark for place, answer in answers.items()}

    def describe_cluster(self) -> ClusterDescription:
        described = _result(self.admin.describe_cluster())
        return ClusterDescription(
            cluster_id=described.cluster_id,
            controller=described.controller.id,
            brokers={node.id: f"{node.host}:{node.port}" for node in described.nodes},
        )

    def _list_offsets(self, topic: str, partitions: Sequence[int], spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(topic, partition): spec for partition in partitions}
        answers = self.admin.list_offsets(asked)
        return {place.partition: _result(answer).offset for place, answer in answers.items()}

    def _describe_configs(self, resource: ConfigResource) -> dict[str, str | None]:
        entries = _result(self.admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in entries.items()}


def received_from(message: Message) -> Received:
    kind, timestamp_ms = message.timestamp()
    assert kind != TIMESTAMP_NOT_AVAILABLE
    return Received(
        offset=message.offset(),
        sample=Sample(
            key=message.key(),
            value=message.value(),
            headers=tuple(message.headers() or ()),
            timestamp_ms=timestamp_ms,
        ),
    )


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def _result(answer: Future[T]) -> T:
    try:
        return answer.result(CALL_TIMEOUT_S)
    except KafkaException as error:
        raise _refused(error.args[0]) from error


def _refused(error: KafkaError) -> Refused:
    return Refused(_LOCAL_CODES.get(error.code(), error.code()), error.str())
