"""Admin calls about the cluster itself: brokers, features, leaders, replicas, log directories, the quorum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, TopicPartition
from strandline.client.admin.calls import AdminCalls, check, failure, outcome
from strandline.client.errors import KafkaError
from strandline.client.net.connections import VERSIONS_REQUEST, Node
from strandline.client.net.partitions import by_topic
from strandline.wire.api.k18_api_versions import ApiVersionsResponse
from strandline.wire.api.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from strandline.wire.api.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.api.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from strandline.wire.api.k55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from strandline.wire.api.k57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from strandline.wire.api.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_ELECTIONS = {"preferred": 0, "unclean": 1}
_UPGRADES = {"upgrade": 1, "safe-downgrade": 2, "unsafe-downgrade": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]
    fenced: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    finalized: Mapping[str, int]
    supported: Mapping[str, tuple[int, int]]
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    path: str
    error: KafkaError | None
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[TopicPartition, int]  # sizes in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    replica_id: int
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class ClusterAdmin(AdminCalls):
    async def describe_cluster(
        self, *, include_fenced: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        deadline = self._deadline(timeout)

        async def once() -> ClusterDescription:
            connection = await self._cluster.any_connection()
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=False,
                include_fenced_brokers=include_fenced and connection.supports(DescribeClusterRequest, 2),
            )
            answer = await self._ask(connection, request, DescribeClusterResponse, deadline)
            check(answer.error_code, answer.error_message, "the cluster")
            return ClusterDescription(
                cluster_id=answer.cluster_id,
                controller_id=answer.controller_id,
                nodes=tuple(Node(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers),
                fenced=tuple(each.broker_id for each in answer.brokers if each.is_fenced),
            )

        return await self._repeat(once, deadline)

    async def describe_features(self, *, timeout: float | None = None) -> Features:
        deadline = self._deadline(timeout)

        async def once() -> Features:
            answer = await self._ask_any(VERSIONS_REQUEST, ApiVersionsResponse, deadline)
            check(answer.error_code, None, "features")
            return Features(
                finalized={each.name: each.max_version_level for each in answer.finalized_features},
                supported={
                    each.name: (each.min_version, each.max_version) for each in answer.supported_features
                },
                epoch=answer.finalized_features_epoch,
            )

        return await self._repeat(once, deadline)

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        kind: Literal["upgrade", "safe-downgrade", "unsafe-downgrade"] = "upgrade",
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        deadline = self._deadline(timeout)
        request = UpdateFeaturesRequest(
            timeout_ms=self._timeout_ms(deadline),
            feature_updates=tuple(
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=_UPGRADES[kind])
                for name, level in levels.items()
            ),
            validate_only=validate_only,
        )

        async def once() -> None:
            answer = await self._ask_controller(request, UpdateFeaturesResponse, deadline)
            check(answer.error_code, answer.error_message, "features")
            outcome(
                {
                    each.feature: failure(each.error_code, each.error_message, each.feature) or True
                    for each in answer.results
                }
            )

        await self._repeat(once, deadline)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        election: Literal["preferred", "unclean"] = "preferred",
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elects leaders of the given partitions, or of all. A partition that has the right leader already says so with
        ELECTION_NOT_NEEDED, which is no failure."""
        deadline = self._deadline(timeout)
        wanted = None
        if partitions is not None:
            wanted = tuple(
                TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            )
        request = ElectLeadersRequest(
            election_type=_ELECTIONS[election], topic_partitions=wanted, timeout_ms=self._timeout_ms(deadline)
        )

        async def once() -> dict[TopicPartition, KafkaError | None]:
            answer = await self._ask_controller(request, ElectLeadersResponse, deadline)
            check(answer.error_code, None, "the election")
            return {
                TopicPartition(topic.topic, each.partition_id): failure(
                    each.error_code, each.error_message, f"{topic.topic}-{each.partition_id}"
                )
                for topic in answer.replica_election_results
                for each in topic.partition_result
            }

        return await self._repeat(once, deadline)

    async def reassign_partitions(
        self, replicas: Mapping[TopicPartition, Iterable[int] | None], *, timeout: float | None = None
    ) -> None:
        """Moves partitions to other replicas; None cancels a move that is under way."""
        deadline = self._deadline(timeout)
        topics: dict[str, list[ReassignablePartition]] = {}
        for (topic, partition), targets in replicas.items():
            moved = ReassignablePartition(
                partition_index=partition, replicas=None if targets is None else tuple(targets)
            )
            topics.setdefault(topic, []).append(moved)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._timeout_ms(deadline),
            topics=tuple(
                ReassignableTopic(name=name, partitions=tuple(found)) for name, found in topics.items()
            ),
        )

        async def once() -> None:
            answer = await self._ask_controller(request, AlterPartitionReassignmentsResponse, deadline)
            check(answer.error_code, answer.error_message, "the reassignment")
            outcome(
                {
                    TopicPartition(topic.name, each.partition_index): failure(
                        each.error_code, each.error_message, f"{topic.name}-{each.partition_index}"
                    )
                    or True
                    for topic in answer.responses
                    for each in topic.partitions
                }
            )

        await self._repeat(once, deadline)

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        deadline = self._deadline(timeout)
        wanted = None
        if partitions is not None:
            wanted = tuple(
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(partitions).items()
            )
        request = ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms(deadline), topics=wanted)

        async def once() -> dict[TopicPartition, Reassignment]:
            answer = await self._ask_controller(request, ListPartitionReassignmentsResponse, deadline)
            check(answer.error_code, answer.error_message, "reassignments")
            return {
                TopicPartition(topic.name, each.partition_index): Reassignment(
                    replicas=tuple(each.replicas),
                    adding=tuple(each.adding_replicas),
                    removing=tuple(each.removing_replicas),
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        return await self._repeat(once, deadline)

    async def describe_log_dirs(
        self,
        node_ids: Iterable[int] | None = None,
        *,
        topics: Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> dict[int, tuple[LogDirectory, ...]]:
        """The log directories of the given brokers, or of all, with the sizes of their replicas."""
        deadline = self._deadline(timeout)
        wanted = None
        if topics is not None:
            known = await self._partitions_of(topics, deadline)
            wanted = tuple(
                DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in known.items()
            )
        found: dict[int, tuple[LogDirectory, ...]] = {}

        async def once(node_id: int) -> tuple[LogDirectory, ...]:
            answer = await self._ask_node(
                node_id, DescribeLogDirsRequest(topics=wanted), DescribeLogDirsResponse, deadline
            )
            check(answer.error_code, None, f"log directories of broker {node_id}")
            return _log_directories(answer)

        for node_id in self._nodes() if node_ids is None else node_ids:
            found[node_id] = await self._repeat(partial(once, node_id), deadline)
        return found

    async def _partitions_of(self, topics: Iterable[str], deadline: float) -> dict[str, tuple[int, ...]]:
        found = {}
        for name in topics:
            info = await self._cluster.topic(name, deadline)
            found[name] = tuple(range(len(info.partitions)))
        return found

    async def describe_quorum(self, *, timeout: float | None = None) -> QuorumDescription:
        """The controllers' own log: who leads it, and how far the others are."""
        deadline = self._deadline(timeout)
        request = DescribeQuorumRequest(
            topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),)),)
        )

        async def once() -> QuorumDescription:
            answer = await self._ask_controller(request, DescribeQuorumResponse, deadline)
            check(answer.error_code, answer.error_message, "the quorum")
            partition = answer.topics[0].partitions[0]
            check(partition.error_code, partition.error_message, "the quorum")
            return QuorumDescription(
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                high_watermark=partition.high_watermark,
                voters=tuple(_replica(each) for each in partition.current_voters),
                observers=tuple(_replica(each) for each in partition.observers),
            )

        return await self._repeat(once, deadline)


def _log_directories(answer: DescribeLogDirsResponse) -> tuple[LogDirectory, ...]:
    return tuple(
        LogDirectory(
            path=each.log_dir,
            error=None if each.error_code == ErrorCode.NONE else failure(each.error_code, None, each.log_dir),
            total_bytes=each.total_bytes,
            usable_bytes=each.usable_bytes,
            replicas={
                TopicPartition(topic.name, partition.partition_index): partition.partition_size
                for topic in each.topics
                for partition in topic.partitions
            },
        )
        for each in answer.results
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        replica_id=state.replica_id,
        log_end_offset=state.log_end_offset,
        last_fetch_ms=state.last_fetch_timestamp,
        last_caught_up_ms=state.last_caught_up_timestamp,
    )
