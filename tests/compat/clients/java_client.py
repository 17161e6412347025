"""The Java clients, driven through tests/compat/java/Clients.java: one JVM, a JSON line per call."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
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
from tests.oracle.java_worker import JavaWorker

_READ_SETTINGS = {"fetch.max.wait.ms": str(READ_WAIT_MS)}


class JavaClient:
    def __init__(self, bootstrap: str, worker: JavaWorker) -> None:
        self._bootstrap = bootstrap
        self._worker = worker

    def call(self, operation: str, **arguments: Any) -> Any:
        """Returns the result of one operation of Clients.java. The limit leaves it time to report its own timeout."""
        question = {
            "operation": operation,
            "bootstrap": self._bootstrap,
            "timeout_ms": int(CALL_TIMEOUT_S * 1000),
            **arguments,
        }
        answer = self._worker.call(question, timeout_s=CALL_TIMEOUT_S + 10.0)
        if "error" in answer:
            raise Refused(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

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
        written = self.call(
            "write",
            topic=topic,
            partition=partition,
            records=[_to_json(sample) for sample in samples],
            settings={
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": str(idempotent).lower(),
                "max.request.size": str(REQUEST_BYTES_MAX),
                "delivery.timeout.ms": str(int(CALL_TIMEOUT_S * 1000)),
                "request.timeout.ms": str(int(CALL_TIMEOUT_S * 1000) - 1000),
            },
        )
        return [Written(partition=each["partition"], offset=each["offset"]) for each in written]

    def read(self, topic: str, *, partition: int = 0, offset: int = 0, count: int) -> list[Received]:
        records = self.call(
            "read", topic=topic, partition=partition, offset=offset, count=count, settings=_READ_SETTINGS
        )
        return [Received(offset=record["offset"], sample=_from_json(record)) for record in records]

    def read_partitions(
        self, topic: str, partitions: Sequence[int], *, count: int
    ) -> dict[int, list[Received]]:
        """Reads all partitions from their beginning with one consumer, and returns the first `count` records."""
        read = self.call(
            "read_partitions",
            topic=topic,
            partitions=list(partitions),
            count=count,
            settings=_READ_SETTINGS,
        )
        return {
            int(partition): [Received(offset=each["offset"], sample=_from_json(each)) for each in records]
            for partition, records in read.items()
        }

    def beginning_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return _by_partition(self.call("beginning_offsets", topic=topic, partitions=list(partitions)))

    def end_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return _by_partition(self.call("end_offsets", topic=topic, partitions=list(partitions)))

    def offsets_for_times(self, topic: str, timestamps_ms: Mapping[int, int]) -> dict[int, int | None]:
        return _by_partition(self.call("offsets_for_times", topic=topic, timestamps_ms=dict(timestamps_ms)))

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        self.call(
            "create_topic",
            topic=topic,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=dict(configs or {}),
        )

    def delete_topic(self, topic: str) -> None:
        self.call("delete_topic", topic=topic)

    def list_topics(self) -> set[str]:
        return set(self.call("list_topics"))

    def describe_topic(self, topic: str) -> dict[int, PartitionDescription]:
        described = self.call("describe_topic", topic=topic)
        return {
            partition["partition"]: PartitionDescription(
                leader=partition["leader"],
                replicas=tuple(partition["replicas"]),
                in_sync=tuple(partition["in_sync"]),
            )
            for partition in described["partitions"]
        }

    def create_partitions(self, topic: str, *, total: int) -> None:
        self.call("create_partitions", topic=topic, total=total)

    def describe_topic_configs(self, topic: str) -> dict[str, str | None]:
        return {name: entry["value"] for name, entry in self.describe_configs("TOPIC", topic).items()}

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self.call("alter_configs", kind="TOPIC", name=topic, configs=dict(configs))

    def describe_broker_configs(self, broker: int) -> dict[str, str | None]:
        return {name: entry["value"] for name, entry in self.describe_configs("BROKER", str(broker)).items()}

    def describe_configs(self, kind: str, name: str) -> dict[str, dict[str, Any]]:
        """By config name: value, source, type, read_only and sensitive."""
        entries: dict[str, dict[str, Any]] = self.call("describe_configs", kind=kind, name=name)
        return entries

    def delete_records(self, topic: str, before_offsets: Mapping[int, int]) -> dict[int, int]:
        return _by_partition(self.call("delete_records", topic=topic, before_offsets=dict(before_offsets)))

    def describe_cluster(self) -> ClusterDescription:
        described = self.call("describe_cluster")
        return ClusterDescription(
            cluster_id=described["cluster_id"],
            controller=described["controller"],
            brokers={int(node): address for node, address in described["brokers"].items()},
        )


def _by_partition(answer: Mapping[str, Any]) -> dict[int, Any]:
    return {int(partition): value for partition, value in answer.items()}


def _to_json(sample: Sample) -> dict[str, Any]:
    return {
        "key": _encoded(sample.key),
        "value": _encoded(sample.value),
        "headers": [[name, _encoded(value)] for name, value in sample.headers],
        "timestamp_ms": sample.timestamp_ms,
    }


def _from_json(record: Mapping[str, Any]) -> Sample:
    return Sample(
        key=_decoded(record["key"]),
        value=_decoded(record["value"]),
        headers=tuple((name, _decoded(value)) for name, value in record["headers"]),
        timestamp_ms=record["timestamp_ms"],
    )


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
