"""A controller with a few brokers, and plans that are applied when they are made."""

from __future__ import annotations

import copy
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.planned import Planned
from strandline.config import DynamicConfigs
from strandline.controller import brokers
from strandline.controller.brokers import Registration, TopicRules
from strandline.controller.features import first_records
from strandline.controller.image import ClusterImage
from strandline.controller.in_sync import plan_alter_partition
from strandline.controller.state import ControllerState
from strandline.controller.topics import plan_create_topics
from strandline.wire.api.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.wire.api.k56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from strandline.wire.schema import Message
from tests.unit.broker.world import SeededRandom
from tests.unit.config.settings import started

DIRECTORY = b"\xdd" * 16


class Cluster:
    def __init__(self, *racks: str | None, **settings: str) -> None:
        """One live broker, 1 and on, for each rack."""
        self.settings = settings
        self.state = self.new()
        self.log: list[Message] = []
        self.commit(Planned(records=first_records(self.image, self.configs), response=None))
        for number, rack in enumerate(racks or (None,), start=1):
            self.commit(
                brokers.plan_register(self.image, registration(number, rack), len(self.log), self.rules)
            )
            self.commit(brokers.plan_unfence(self.image, number, self.rules))

    @property
    def image(self) -> ClusterImage:
        return self.state.image

    @property
    def configs(self) -> DynamicConfigs:
        return self.state.configs

    @property
    def rules(self) -> TopicRules:
        return self.state.rules

    def new(self) -> ControllerState:
        return ControllerState(DynamicConfigs(started(**self.settings)), SeededRandom())

    def commit(self, planned: Planned[Any]) -> Any:
        """Applies a plan's records, having checked that planning changed nothing; the response."""
        for record in planned.records:
            self.state.apply(record)
            self.log.append(record)
        return planned.response

    def rebuilt(self) -> ControllerState:
        """Returns a controller that has read the same records."""
        other = self.new()
        for record in self.log:
            other.apply(record)
        return other

    def create(self, *topics: CreatableTopic, validate_only: bool = False) -> Any:
        request = CreateTopicsRequest(topics=topics, timeout_ms=1, validate_only=validate_only)
        return self.commit(plan_create_topics(self.image, self.configs, request, self.state.random))

    def error_of(self, topic: CreatableTopic) -> ErrorCode:
        (result,) = self.create(topic).topics
        return ErrorCode(result.error_code)

    def ask_in_sync(self, name: str, *members: int) -> ResponsePartitionData:
        """The leader of the topic's first partition asks for another in-sync set; the response."""
        image = self.image
        state = image.topics[name].partitions[0]
        asked = PartitionData(
            partition_index=0,
            leader_epoch=state.leader_epoch,
            new_isr_with_epochs=tuple(
                BrokerState(broker_id=n, broker_epoch=image.brokers[n].epoch) for n in members
            ),
            partition_epoch=state.partition_epoch,
        )
        request = AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=image.brokers[state.leader].epoch,
            topics=(TopicData(topic_id=image.topics[name].topic_id, partitions=(asked,)),),
        )
        response = self.commit(plan_alter_partition(self.image, request, 3, self.rules))
        (partition,) = response.topics[0].partitions
        assert isinstance(partition, ResponsePartitionData)
        return partition


def contents(state: ControllerState) -> object:
    """Everything a controller knows, as a value."""
    image = state.image
    return copy.deepcopy(
        (
            image.topics,
            sorted(image.topics_by_id),
            image.brokers,
            image.configs,
            image.features,
            image.next_producer_id,
            {name: repr(state.configs.topic(name)) for name in image.topics},
            state.configs.own_overrides,
            state.configs.shared_overrides,
        )
    )


def registration(node_id: int, rack: str | None = None, *, incarnation: int = 0) -> Registration:
    return Registration(
        broker_id=node_id,
        incarnation=bytes((node_id, incarnation)) * 8,
        endpoints=(),
        features=(),
        rack=rack,
        log_dirs=(DIRECTORY,),
        was_clean_shutdown=True,
    )


def topic(
    name: str = "t",
    partitions: int = -1,
    factor: int = -1,
    assignments: dict[int, tuple[int, ...]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in (assignments or {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ),
    )
