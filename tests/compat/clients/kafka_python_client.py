"""kafka-python."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.compat.clients.interface import (
    CALL_TIMEOUT_S,
    READ_WAIT_MS,
    REQUEST_BYTES_MAX,
    ClusterDescription,
    PartitionDescription,
    Refused,
)
from tests.compat.records import Received, Sample, Written
from tests.oracle.require import require_module

# It reads its message schemas in a way that Python deprecates, on import.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read_text|open_text) is deprecated", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import BrokerResponseError, KafkaError

# The library's own names are offered too, so that nobody else needs to import it with care.
__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "KafkaPythonClient",
    "TopicPartition",
    "received_from",
]

_CODEC_PACKAGES = {"snappy": "python-snappy", "lz4": "lz4", "zstandard": "zstandard"}


class KafkaPythonClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        for module, package in _CODEC_PACKAGES.items():
            require_module(module, install=package)

    @contextmanager
    def producer(self, **settings: Any) -> Iterator[KafkaProducer]:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, **settings)
        try:
            yield producer
        finally:
            producer.close(timeout=CALL_TIMEOUT_S)

    @contextmanager
    def consumer(self, **settings: Any) -> Iterator[KafkaConsumer]:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            enable_auto_commit=False,
            **{"auto_offset_reset": "none", "fetch_max_wait_ms": READ_WAIT_MS, **settings},
        )
        try:
            yield consumer
        finally:
            consumer.close()

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        try:
            yield admin
        except BrokerResponseError as error:
            raise _refused(error) from error
        finally:
            admin.close()

    def can_write(self, sample: Sample) -> bool:
        """It refuses by itself a record without key and value, and null header values."""
        if sample.key is None and sample.value is None:
            return False
        return all(value is not None for _, value in sample.headers)

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
        with self.producer(
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=REQUEST_BYTES_MAX,
            linger_ms=1,
        ) as producer:
            futures = [
                producer.send(
                    topic,
                    value=sample.value,
                    key=sample.key,
                    headers=list(sample.headers),
                    partition=partition,
                    timestamp_ms=sample.timestamp_ms,
                )
                for sample in samples
            ]
            producer.flush(timeout=CALL_TIMEOUT_S)
            try:
                metadata = [future.get(timeout=CALL_TIMEOUT_S) for future in futures]
            except BrokerResponseError as error:
                raise _refused(error) from error
        return [Written(partition=each.partition, offset=each.offset) for each in metadata]

    def read(self, topic: str, *, partition: int = 0, offset: int = 0, count: int) -> list[Received]:
        place = TopicPartition(topic, partition)
        received: list[Received] = []
        deadline = time.monotonic() + CALL_TIMEOUT_S
        with self.consumer() as consumer:
            consumer.assign([place])
            consumer.seek(place, offset)
            try:
                while len(received) < count:
                    assert time.monotonic() < deadline, f"{len(received)} of {count} records came"
                    polled = consumer.poll(timeout_ms=1000, max_records=count - len(received))
                    received.extend(received_from(record) for record in polled.get(place, ()))
            except BrokerResponseError as error:
                raise _refused(error) from error
        return received

    def beginning_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        with self.consumer() as consumer:
            answers = consumer.beginning_offsets([TopicPartition(topic, each) for each in partitions])
        return {place.partition: offset for place, offset in answers.items()}

    def end_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        with self.consumer() as consumer:
            answers = consumer.end_offsets([TopicPartition(topic, each) for each in partitions])
        return {place.partition: offset for place, offset in answers.items()}

    def offsets_for_times(self, topic: str, timestamps_ms: Mapping[int, int]) -> dict[int, int | None]:
        asked = {TopicPartition(topic, partition): time_ms for partition, time_ms in timestamps_ms.items()}
        with self.consumer() as consumer:
            answers = consumer.offsets_for_times(asked)
        return {place.partition: found.offset if found else None for place, found in answers.items()}

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        new = {
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(configs or {}),
        }
        with self.admin() as admin:
            admin.create_topics({topic: new})

    def delete_topic(self, topic: str) -> None:
        with self.admin() as admin:
            admin.delete_topics([topic])

    def list_topics(self) -> set[str]:
        with self.admin() as admin:
            return set(admin.list_topics())

    def describe_topic(self, topic: str) -> dict[int, PartitionDescription]:
        with self.admin() as admin:
            (described,) = admin.describe_topics([topic])
        if described["error_code"]:
            raise Refused(described["error_code"], topic)
        return {
            partition["partition_index"]: PartitionDescription(
                leader=partition["leader_id"],
                replicas=tuple(partition["replica_nodes"]),
                in_sync=tuple(partition["isr_nodes"]),
            )
            for partition in described["partitions"]
        }

    def create_partitions(self, topic: str, *, total: int) -> None:
        with self.admin() as admin:
            admin.create_partitions({topic: total})

    def describe_topic_configs(self, topic: str) -> dict[str, str | None]:
        return self._describe_configs(ConfigResourceType.TOPIC, topic)

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        with self.admin() as admin:
            outcome = admin.alter_configs([resource])["topic"][topic]
        if outcome != "OK":
            # The library only gives the error as text: "[Error 40] InvalidConfigurationError: ...".
            raise Refused(int(outcome.partition("[Error ")[2].partition("]")[0]), outcome)

    def describe_broker_configs(self, broker: int) -> dict[str, str | None]:
        return self._describe_configs(ConfigResourceType.BROKER, str(broker))

    def delete_records(self, topic: str, before_offsets: Mapping[int, int]) -> dict[int, int]:
        asked = {TopicPartition(topic, partition): offset for partition, offset in before_offsets.items()}
        with self.admin() as admin:
            answers = admin.delete_records(asked)
        return {place.partition: answer["low_watermark"] for place, answer in answers.items()}

    def describe_cluster(self) -> ClusterDescription:
        with self.admin() as admin:
            described = admin.describe_cluster()
        return ClusterDescription(
            cluster_id=described["cluster_id"],
            controller=described["controller_id"],
            brokers={node["broker_id"]: f"{node['host']}:{node['port']}" for node in described["brokers"]},
        )

    def _describe_configs(self, kind: ConfigResourceType, name: str) -> dict[str, str | None]:
        with self.admin() as admin:
            described = admin.describe_configs([ConfigResource(kind, name)], config_filter="all")
        return {key: entry["value"] for key, entry in described[kind.name.lower()][name].items()}


def received_from(record: Any) -> Received:
    return Received(
        offset=record.offset,
        sample=Sample(
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
            timestamp_ms=record.timestamp,
        ),
    )


def _refused(error: BrokerResponseError) -> Refused:
    return Refused(error.errno, str(error))
