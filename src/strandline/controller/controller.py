"""The controller: decides every change of the cluster's metadata.

A method `plan_…` looks at the image and gives the records that would make the change and the answer; it changes
nothing. `apply` changes the image. The runtime appends a plan's records, applies them here at once, so that the next
plan sees them, and gives the answer when they are committed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.config import DynamicConfigs, Refused, create_topic
from strandline.controller import (
    brokers,
    configs,
    directories,
    elections,
    features,
    in_sync,
    producer_ids,
    reassignments,
    topics,
)
from strandline.controller.brokers import Registration, TopicRules
from strandline.controller.image import ClusterImage
from strandline.controller.producer_ids import ProducerIdBlock
from strandline.ports.random import Random
from strandline.wire.api.k19_create_topics import (
    CreatableTopicConfigs,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from strandline.wire.api.k33_alter_configs import AlterConfigsRequest, AlterConfigsResponse
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from strandline.wire.api.k43_elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from strandline.wire.api.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from strandline.wire.api.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from strandline.wire.api.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse
from strandline.wire.api.k57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from strandline.wire.api.k70_controller_registration import ControllerRegistrationRequest
from strandline.wire.api.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from strandline.wire.records.metadata import ConfigRecord, RemoveTopicRecord
from strandline.wire.schema import Message


class Controller:
    def __init__(self, dynamic: DynamicConfigs, random: Random) -> None:
        self.image = ClusterImage()
        self.configs = dynamic
        self._random = random
        self._rules = TopicRules(
            min_in_sync=lambda topic: dynamic.topic(topic).min_insync_replicas,
            allows_unclean=lambda topic: dynamic.topic(topic).unclean_leader_election_enable,
            uses_eligible=lambda: features.uses_eligible_leaders(self.image),
        )

    def apply(self, record: Message) -> None:
        apply_to(self.image, self.configs, record)

    def first_records(self) -> tuple[Message, ...]:
        """What a new metadata log begins with."""
        minimum = features.one_minimum_records(self.image, self._number(features.MIN_IN_SYNC_KEY))
        return (*minimum, *features.bootstrap_records())

    def plan_register(
        self, registration: Registration, next_offset: int, *, is_old_alive: bool = False
    ) -> Planned[int]:
        return brokers.plan_register(
            self.image, registration, next_offset, self._rules, is_old_alive=is_old_alive
        )

    def plan_register_controller(self, request: ControllerRegistrationRequest) -> Planned[None]:
        return brokers.plan_register_controller(self.image, request)

    def plan_fence(self, broker_id: int) -> Planned[None]:
        return brokers.plan_fence(self.image, broker_id, self._rules)

    def plan_unfence(self, broker_id: int) -> Planned[None]:
        return brokers.plan_unfence(self.image, broker_id, self._rules)

    def plan_controlled_shutdown(self, broker_id: int) -> Planned[bool]:
        return brokers.plan_controlled_shutdown(self.image, broker_id, self._rules)

    def plan_unregister(self, broker_id: int) -> Planned[None]:
        return brokers.plan_unregister(self.image, broker_id, self._rules)

    def plan_offline_directories(self, broker_id: int, offline: Collection[bytes]) -> Planned[None]:
        return directories.plan_offline_directories(self.image, broker_id, offline, self._rules)

    def plan_assign(self, request: AssignReplicasToDirsRequest) -> Planned[AssignReplicasToDirsResponse]:
        return directories.plan_assign(self.image, request, self._rules)

    def plan_elect_leaders(self, request: ElectLeadersRequest) -> Planned[ElectLeadersResponse]:
        return elections.plan_elect_leaders(self.image, request, self._rules)

    def plan_preferred_leaders(self, tolerated_percentage: int) -> Planned[int]:
        return elections.plan_preferred_leaders(self.image, self._rules, tolerated_percentage)

    def plan_unclean_leaders(self) -> Planned[int]:
        return elections.plan_unclean_leaders(self.image, self._rules)

    def plan_alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Planned[AlterPartitionReassignmentsResponse]:
        return reassignments.plan_alter_reassignments(self.image, request, self._rules)

    def list_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return reassignments.list_reassignments(self.image, request)

    def plan_update_features(
        self, request: UpdateFeaturesRequest, version: int, kraft_version: int
    ) -> Planned[UpdateFeaturesResponse]:
        minimum = self._number(features.MIN_IN_SYNC_KEY)
        return features.plan_update_features(
            self.image, request, version, kraft_version=kraft_version, static_minimum=minimum
        )

    def plan_alter_partition(
        self, request: AlterPartitionRequest, version: int
    ) -> Planned[AlterPartitionResponse]:
        return in_sync.plan_alter_partition(self.image, request, version, self._rules)

    def plan_create_topics(self, request: CreateTopicsRequest) -> Planned[CreateTopicsResponse]:
        defaults = topics.TopicDefaults(
            partition_count=self._number("num.partitions"),
            replication_factor=self._number("default.replication.factor"),
            overrides=self._topic_overrides,
            effective_configs=self._effective_configs,
        )
        return topics.plan_create_topics(self.image, request, defaults, self._random)

    def plan_delete_topics(self, request: DeleteTopicsRequest, version: int) -> Planned[DeleteTopicsResponse]:
        enabled = bool(self.configs.broker_value("delete.topic.enable"))
        return topics.plan_delete_topics(self.image, request, version, enabled=enabled)

    def plan_create_partitions(self, request: CreatePartitionsRequest) -> Planned[CreatePartitionsResponse]:
        return topics.plan_create_partitions(self.image, request, self._random)

    def plan_alter_configs(self, request: AlterConfigsRequest) -> Planned[AlterConfigsResponse]:
        return configs.plan_alter_configs(self.image, self.configs, request)

    def plan_incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> Planned[IncrementalAlterConfigsResponse]:
        return configs.plan_incremental_alter_configs(self.image, self.configs, request)

    def plan_allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> Planned[ProducerIdBlock]:
        return producer_ids.plan_allocate_producer_ids(self.image, broker_id, broker_epoch)

    def _number(self, key: str) -> int:
        value = self.configs.broker_value(key)
        assert isinstance(value, int)
        return value

    def _topic_overrides(self, given: Sequence[tuple[str, str | None]]) -> Mapping[str, str]:
        decided = create_topic(self.configs, given)
        if isinstance(decided, Refused):
            raise KafkaError(ErrorCode[decided.error], decided.message)
        return decided.overrides

    def _effective_configs(self, overrides: Mapping[str, str]) -> tuple[CreatableTopicConfigs, ...]:
        return tuple(
            CreatableTopicConfigs(
                name=entry.name,
                value=None if entry.is_sensitive else entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in self.configs.created_topic_entries(overrides)
        )


def apply_to(image: ClusterImage, dynamic: DynamicConfigs, record: Message) -> None:
    """Applies a record to an image and to the configs that are worked out from it."""
    match record:
        case ConfigRecord():
            image.apply(record)
            key = (record.resource_type, record.resource_name)
            dynamic.set_overrides(*key, image.configs.get(key, {}))
        case RemoveTopicRecord():
            name = image.topics_by_id[record.topic_id].name
            image.apply(record)
            dynamic.set_overrides(2, name, {})
        case _:
            image.apply(record)
