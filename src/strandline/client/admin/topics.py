"""Admin calls about topics, partitions and their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition, Uuid
from strandline.client.admin.calls import AdminBase, check, error_from, results_or_raise
from strandline.client.arguments import ConfigValue, config_texts, listed
from strandline.client.errors import KafkaError, error_for
from strandline.client.net.metadata import Metadata, TopicInfo
from strandline.client.net.partitions import by_topic
from strandline.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from strandline.wire.api.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.wire.api.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)

EARLIEST: Final = -2
LATEST: Final = -1
MAX_TIMESTAMP: Final = -3
_TOPIC_STATES_SINCE: Final = 6  # from here on DeleteTopics takes structures instead of names


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 leaves a number to the broker's defaults. `assignment` names replicas by partition."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    assignment: Mapping[int, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """A topic that was created."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffset:
    """An offset of a log, with the timestamp of its record."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class TopicAdmin(AdminBase):
    """The calls about topics, partitions and records."""

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> dict[str, CreatedTopic]:
        """Creates topics; with `validate_only` it only says whether it would."""
        deadline = self._deadline(timeout)
        request = CreateTopicsRequest(
            topics=tuple(_creatable(topic) for topic in topics),
            timeout_ms=self._timeout_ms(deadline),
            validate_only=validate_only,
        )

        async def once() -> dict[str, CreatedTopic]:
            response = await self._call_controller(request, CreateTopicsResponse, deadline)
            return results_or_raise(
                {
                    each.name: error_from(each.error_code, each.error_message, f"topic {each.name}")
                    or CreatedTopic(
                        name=each.name,
                        topic_id=Uuid(each.topic_id),
                        partitions=each.num_partitions,
                        replication_factor=each.replication_factor,
                    )
                    for each in response.topics
                }
            )

        return await self._retry(once, deadline)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, ConfigValue] | None = None,
        timeout: float | None = None,
    ) -> CreatedTopic:
        """Creates one topic, and returns its id, partitions and settings."""
        topic = NewTopic(
            name=name, partitions=partitions, replication_factor=replication_factor, configs=configs or {}
        )
        return (await self.create_topics([topic], timeout=timeout))[name]

    async def delete_topics(self, names: Iterable[str], *, timeout: float | None = None) -> None:
        """Deletes topics with all of their records."""
        names = listed(names, "names")
        deadline = self._deadline(timeout)
        requested = tuple(names)

        async def once() -> None:
            cluster = self._cluster
            connection = await cluster.least_loaded_connection()
            if cluster.metadata.controller_id in cluster.metadata.nodes:
                connection = cluster.connection(cluster.metadata.controller_id)
                await connection.open()
            if connection.version(DeleteTopicsRequest) >= _TOPIC_STATES_SINCE:
                states = tuple(DeleteTopicState(name=name) for name in requested)
                request = DeleteTopicsRequest(topics=states, timeout_ms=self._timeout_ms(deadline))
            else:
                request = DeleteTopicsRequest(topic_names=requested, timeout_ms=self._timeout_ms(deadline))
            response = await self._call(connection, request, DeleteTopicsResponse, deadline)
            results_or_raise(
                {
                    each.name: error_from(each.error_code, each.error_message, f"topic {each.name}") or True
                    for each in response.responses
                }
            )

        await self._retry(once, deadline)

    async def list_topics(self, *, include_internal: bool = False, timeout: float | None = None) -> list[str]:
        """Returns the names of all topics."""
        metadata = await self._metadata(None, self._deadline(timeout))
        results = metadata.topics.values()
        return sorted(topic.name for topic in results if include_internal or not topic.is_internal)

    async def describe_all_topics(self, *, timeout: float | None = None) -> list[TopicInfo]:
        """Returns all topics with their partitions, internal ones too, by name."""
        metadata = await self._metadata(None, self._deadline(timeout))
        return [metadata.topics[name] for name in sorted(metadata.topics)]

    async def describe_topics(
        self, names: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, TopicInfo]:
        """Returns the topics with their partitions."""
        names = listed(names, "names")
        requested = tuple(names)
        metadata = await self._metadata(requested, self._deadline(timeout))
        results: dict[str, TopicInfo | KafkaError] = {}
        for name in requested:
            unknown = error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name}")
            results[name] = metadata.topics.get(name) or metadata.topic_errors.get(name) or unknown
        return results_or_raise(results)

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, list[tuple[int, ...]]] | None = None,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Raises the number of partitions of topics to these; `assignments` names the replicas of the new ones."""
        deadline = self._deadline(timeout)
        replicas_by_topic = assignments or {}
        request = CreatePartitionsRequest(
            topics=tuple(
                CreatePartitionsTopic(
                    name=name,
                    count=count,
                    assignments=tuple(
                        CreatePartitionsAssignment(broker_ids=ids) for ids in replicas_by_topic[name]
                    )
                    if name in replicas_by_topic
                    else None,
                )
                for name, count in counts.items()
            ),
            timeout_ms=self._timeout_ms(deadline),
            validate_only=validate_only,
        )

        async def once() -> None:
            response = await self._call_controller(request, CreatePartitionsResponse, deadline)
            results_or_raise(
                {
                    each.name: error_from(each.error_code, each.error_message, f"topic {each.name}") or True
                    for each in response.results
                }
            )

        await self._retry(once, deadline)

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Deletes the records before these offsets (-1: all of them); returns the log start offsets that result."""
        deadline = self._deadline(timeout)

        async def once() -> dict[TopicPartition, int]:
            results: dict[TopicPartition, int | KafkaError] = {}
            for node_id, partitions in (await self._leaders(before, deadline)).items():
                request = DeleteRecordsRequest(
                    topics=tuple(
                        DeleteRecordsTopic(
                            name=topic,
                            partitions=tuple(
                                DeleteRecordsPartition(
                                    partition_index=number, offset=before[TopicPartition(topic, number)]
                                )
                                for number in numbers
                            ),
                        )
                        for topic, numbers in by_topic(partitions).items()
                    ),
                    timeout_ms=self._timeout_ms(deadline),
                )
                response = await self._call_broker(node_id, request, DeleteRecordsResponse, deadline)
                for topic in response.topics:
                    for each in topic.partitions:
                        where = TopicPartition(topic.name, each.partition_index)
                        results[where] = error_from(each.error_code, None, f"{where}") or each.low_watermark
            return results_or_raise(results)

        return await self._retry(once, deadline)

    async def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        is_read_committed: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Returns the first offset at or after each timestamp, or at EARLIEST, LATEST or MAX_TIMESTAMP; -1 if there is
        none."""
        deadline = self._deadline(timeout)

        async def once() -> dict[TopicPartition, ListedOffset]:
            results: dict[TopicPartition, ListedOffset | KafkaError] = {}
            for node_id, partitions in (await self._leaders(wanted, deadline)).items():
                request = ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=int(is_read_committed),
                    topics=tuple(
                        ListOffsetsTopic(
                            name=topic,
                            partitions=tuple(
                                ListOffsetsPartition(
                                    partition_index=number, timestamp=wanted[TopicPartition(topic, number)]
                                )
                                for number in numbers
                            ),
                        )
                        for topic, numbers in by_topic(partitions).items()
                    ),
                )
                response = await self._call_broker(node_id, request, ListOffsetsResponse, deadline)
                for topic in response.topics:
                    for each in topic.partitions:
                        where = TopicPartition(topic.name, each.partition_index)
                        results[where] = error_from(each.error_code, None, f"{where}") or ListedOffset(
                            offset=each.offset, timestamp_ms=each.timestamp, leader_epoch=each.leader_epoch
                        )
            return results_or_raise(results)

        return await self._retry(once, deadline)

    async def _metadata(self, names: tuple[str, ...] | None, deadline: float) -> Metadata:
        """Requests metadata of topics. The metadata of the client itself stays as it is."""
        topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)

        async def once() -> Metadata:
            response = await self._call_any_broker(request, MetadataResponse, deadline)
            check(response.error_code, None, "metadata")
            results = Metadata()
            results.apply(response)
            return results

        return await self._retry(once, deadline)


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignment = topic.assignment
    return CreatableTopic(
        name=topic.name,
        # An assignment says both numbers itself.
        num_partitions=topic.partitions if assignment is None else -1,
        replication_factor=topic.replication_factor if assignment is None else -1,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(replicas))
            for number, replicas in (assignment or {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value)
            for name, value in config_texts(topic.configs).items()
        ),
    )
