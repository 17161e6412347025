"""Admin calls about the cluster itself: brokers, features, leaders, replicas, log directories, the quorum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, ZERO_UUID, TopicPartition
from strandline.client.admin.calls import AdminBase, check, error_from, results_or_raise
from strandline.client.errors import KafkaError
from strandline.client.net.connections import API_VERSIONS_REQUEST, Node
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
    """The brokers of a cluster."""

    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]
    fenced: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The feature levels of a cluster."""

    finalized: Mapping[str, int]
    supported: Mapping[str, tuple[int, int]]
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """The replicas of a partition that is being moved."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    """A log directory of a broker, with the sizes of its replicas."""

    path: str
    error: KafkaError | None
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[TopicPartition, int]  # sizes in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """One voter or observer of the quorum."""

    replica_id: int
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    directory_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    """The state of the controllers' quorum."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class ClusterAdmin(AdminBase):
    """The calls about the cluster itself."""

    async def describe_cluster(
        self, *, include_fenced: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """Returns the brokers of the cluster, fenced ones on request."""
        deadline = self._deadline(timeout)

        async def once() -> ClusterDescription:
            connection = await self._cluster.least_loaded_connection()
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=False,
                include_fenced_brokers=include_fenced and connection.supports(DescribeClusterRequest, 2),
            )
            response = await self._call(connection, request, DescribeClusterResponse, deadline)
            check(response.error_code, response.error_message, "the cluster")
            return ClusterDescription(
                cluster_id=response.cluster_id,
                controller_id=response.controller_id,
                nodes=tuple(
                    Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers
                ),
                fenced=tuple(each.broker_id for each in response.brokers if each.is_fenced),
            )

        return await self._retry(once, deadline)

    async def describe_features(self, *, timeout: float | None = None) -> Features:
        """Returns the feature levels that are finalized, and those that are supported."""
        deadline = self._deadline(timeout)

        async def once() -> Features:
            response = await self._call_any_broker(API_VERSIONS_REQUEST, ApiVersionsResponse, deadline)
            check(response.error_code, None, "features")
            return Features(
                finalized={each.name: each.max_version_level for each in response.finalized_features},
                supported={
                    each.name: (each.min_version, each.max_version) for each in response.supported_features
                },
                epoch=response.finalized_features_epoch,
            )

        return await self._retry(once, deadline)

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        kind: Literal["upgrade", "safe-downgrade", "unsafe-downgrade"] = "upgrade",
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Changes the finalized levels of features."""
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
            response = await self._call_controller(request, UpdateFeaturesResponse, deadline)
            check(response.error_code, response.error_message, "features")
            results_or_raise(
                {
                    each.feature: error_from(each.error_code, each.error_message, each.feature) or True
                    for each in response.results
                }
            )

        await self._retry(once, deadline)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        election: Literal["preferred", "unclean"] = "preferred",
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elects leaders of the given partitions, or of all. A partition that has the right leader already has
        ELECTION_NOT_NEEDED, which is no failure."""
        deadline = self._deadline(timeout)
        requested = None
        if partitions is not None:
            requested = tuple(
                TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            )
        request = ElectLeadersRequest(
            election_type=_ELECTIONS[election],
            topic_partitions=requested,
            timeout_ms=self._timeout_ms(deadline),
        )

        async def once() -> dict[TopicPartition, KafkaError | None]:
            response = await self._call_controller(request, ElectLeadersResponse, deadline)
            check(response.error_code, None, "the election")
            return {
                TopicPartition(topic.topic, each.partition_id): error_from(
                    each.error_code, each.error_message, f"{topic.topic}-{each.partition_id}"
                )
                for topic in response.replica_election_results
                for each in topic.partition_result
            }

        return await self._retry(once, deadline)

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
                ReassignableTopic(name=name, partitions=tuple(results)) for name, results in topics.items()
            ),
        )

        async def once() -> None:
            response = await self._call_controller(request, AlterPartitionReassignmentsResponse, deadline)
            check(response.error_code, response.error_message, "the reassignment")
            results_or_raise(
                {
                    TopicPartition(topic.name, each.partition_index): error_from(
                        each.error_code, each.error_message, f"{topic.name}-{each.partition_index}"
                    )
                    or True
                    for topic in response.responses
                    for each in topic.partitions
                }
            )

        await self._retry(once, deadline)

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Returns the partitions that are being moved, of the given ones or of all."""
        deadline = self._deadline(timeout)
        requested = None
        if partitions is not None:
            requested = tuple(
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(partitions).items()
            )
        request = ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms(deadline), topics=requested)

        async def once() -> dict[TopicPartition, Reassignment]:
            response = await self._call_controller(request, ListPartitionReassignmentsResponse, deadline)
            check(response.error_code, response.error_message, "reassignments")
            return {
                TopicPartition(topic.name, each.partition_index): Reassignment(
                    replicas=tuple(each.replicas),
                    adding=tuple(each.adding_replicas),
                    removing=tuple(each.removing_replicas),
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return await self._retry(once, deadline)

    async def describe_log_dirs(
        self,
        node_ids: Iterable[int] | None = None,
        *,
        topics: Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> dict[int, tuple[LogDirDescription, ...]]:
        """Returns the log directories of the given brokers, or of all, with the sizes of their replicas."""
        deadline = self._deadline(timeout)
        requested = None
        if topics is not None:
            known = await self._partitions_of(topics, deadline)
            requested = tuple(
                DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in known.items()
            )
        results: dict[int, tuple[LogDirDescription, ...]] = {}

        async def once(node_id: int) -> tuple[LogDirDescription, ...]:
            response = await self._call_broker(
                node_id, DescribeLogDirsRequest(topics=requested), DescribeLogDirsResponse, deadline
            )
            check(response.error_code, None, f"log directories of broker {node_id}")
            return _log_dirs(response)

        for node_id in self._nodes() if node_ids is None else node_ids:
            results[node_id] = await self._retry(partial(once, node_id), deadline)
        return results

    async def _partitions_of(self, topics: Iterable[str], deadline: float) -> dict[str, tuple[int, ...]]:
        results = {}
        names = list(topics)
        for name in names:
            self._cluster.add_topic(name)  # all before the first wait: one request gets the metadata of all
        for name in names:
            info = await self._cluster.topic(name, deadline)
            results[name] = tuple(range(len(info.partitions)))
        return results

    async def describe_quorum(self, *, timeout: float | None = None) -> QuorumDescription:
        """Returns the controllers' own log: its leader, and how far the others are."""
        deadline = self._deadline(timeout)
        request = DescribeQuorumRequest(
            topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),)),)
        )

        async def once() -> QuorumDescription:
            response = await self._call_controller(request, DescribeQuorumResponse, deadline)
            check(response.error_code, response.error_message, "the quorum")
            partition = response.topics[0].partitions[0]
            check(partition.error_code, partition.error_message, "the quorum")
            return QuorumDescription(
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                high_watermark=partition.high_watermark,
                voters=tuple(_replica(each) for each in partition.current_voters),
                observers=tuple(_replica(each) for each in partition.observers),
            )

        return await self._retry(once, deadline)


def _log_dirs(response: DescribeLogDirsResponse) -> tuple[LogDirDescription, ...]:
    return tuple(
        LogDirDescription(
            path=each.log_dir,
            error=None
            if each.error_code == ErrorCode.NONE
            else error_from(each.error_code, None, each.log_dir),
            total_bytes=each.total_bytes,
            usable_bytes=each.usable_bytes,
            replicas={
                TopicPartition(topic.name, partition.partition_index): partition.partition_size
                for topic in each.topics
                for partition in topic.partitions
            },
        )
        for each in response.results
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        replica_id=state.replica_id,
        log_end_offset=state.log_end_offset,
        last_fetch_ms=state.last_fetch_timestamp,
        last_caught_up_ms=state.last_caught_up_timestamp,
        directory_id=bytes(state.replica_directory_id),
    )
