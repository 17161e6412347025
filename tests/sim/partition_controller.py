"""The controller of a partition storm: the plans of `strandline.controller`, and who lives as far as it knows."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller import brokers, configs
from strandline.controller.brokers import Registration, TopicRules
from strandline.controller.elections import plan_elect_leaders
from strandline.controller.features import bootstrap_records
from strandline.controller.image import NO_LEADER, TOPIC_RESOURCE, ClusterImage, PartitionState
from strandline.controller.in_sync import plan_alter_partition
from strandline.controller.reassignments import plan_alter_reassignments
from strandline.wire.api.k43_elect_leaders import ElectLeadersRequest
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.api.k56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from strandline.wire.records.metadata import PartitionRecord, RegisterBrokerRecord, TopicRecord
from strandline.wire.schema import Message

if TYPE_CHECKING:
    from tests.sim.partition_storm import Broker, PartitionStorm

CONTROLLER = 0
_TOPIC = "t"
_TOPIC_ID = b"t" * 16
_SESSION_S = 3.0
_ALTER_VERSION = 3


class News(NamedTuple):
    """The records that a broker finds in the metadata log, up to one place of it."""

    version: int
    state: PartitionState
    min_in_sync: int


class Controller:
    def __init__(self, storm: PartitionStorm, nodes: tuple[int, ...], replicas: tuple[int, ...]) -> None:
        self._storm = storm
        self.min_in_sync = 2
        self._rules = TopicRules(
            min_in_sync=lambda _: self.min_in_sync,
            allows_unclean=lambda _: False,
            uses_eligible=lambda: True,
        )
        self._image = ClusterImage()
        self._offset = 0
        self._heard = dict.fromkeys(nodes, 0.0)
        self._registered_at = dict.fromkeys(nodes, 0)  # the version that has its registration
        partition = PartitionRecord(
            partition_id=0,
            topic_id=_TOPIC_ID,
            replicas=replicas,
            isr=replicas,
            removing_replicas=(),
            adding_replicas=(),
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
        )
        self._apply(*bootstrap_records(), TopicRecord(name=_TOPIC, topic_id=_TOPIC_ID), partition)
        self._apply(*(_first_registration(node) for node in nodes))

    @property
    def state(self) -> PartitionState:
        return self._image.topics[_TOPIC].partitions[0]

    def epoch_of(self, node: int) -> int:
        return self._image.brokers[node].epoch

    def _apply(self, *records: Message) -> None:
        for record in records:
            self._image.apply(record)
            self._offset += 1

    def _do(self, planned: Planned[Any]) -> Any:
        if planned.records:
            self._apply(*planned.records)
            self._tell_all()
        return planned.response

    def _tell_all(self) -> None:
        for broker in self._storm.brokers.values():
            self._tell(broker)

    def _tell(self, broker: Broker) -> None:
        news = News(self._offset, copy(self.state), self.min_in_sync)
        self._storm.carry(CONTROLLER, broker.node_id, lambda: broker.told(news))

    # Brokers

    def look(self) -> None:
        """Fences brokers that are silent."""
        for node, at in self._heard.items():
            if self._storm.now - at > _SESSION_S:
                self.fence(node)
        self._storm.at(0.2, self.look)

    def fence(self, node: int) -> None:
        self._do(brokers.plan_fence(self._image, node, self._rules))

    def retire(self, node: int) -> None:
        """Moves leadership to other replicas before a clean end, as far as there are any."""
        while not self._do(brokers.plan_controlled_shutdown(self._image, node, self._rules)):
            pass

    def register(self, broker: Broker) -> None:
        """Registers a new life."""
        node = broker.node_id
        registration = Registration(
            broker_id=node,
            incarnation=bytes([node, broker.life % 256]) * 8,
            endpoints=(),
            features=(),
            rack=None,
            log_dirs=(bytes([node]) * 16,),
            was_clean_shutdown=broker.was_clean,
        )
        plan = brokers.plan_register(self._image, registration, self._offset, self._rules, is_old_alive=False)
        broker.epoch = self._do(plan)
        self._registered_at[node] = self._offset
        self._heard[node] = self._storm.now
        self._tell(broker)

    def heartbeat(self, broker: Broker) -> None:
        """Notes a heartbeat: a broker that has heard of its own registration may lead."""
        node = broker.node_id
        if broker.epoch != self.epoch_of(node):
            return
        self._heard[node] = self._storm.now
        if broker.version >= self._registered_at[node]:
            self._do(brokers.plan_unfence(self._image, node, self._rules))
        self._tell(broker)

    # The partition

    def alter(
        self, asker: Broker, epochs: tuple[int, int], in_sync: dict[int, int]
    ) -> ResponsePartitionData | None:
        """Returns the response to a leader that asks for another in-sync set, by broker epoch; None means that it comes
        later."""
        data = PartitionData(
            partition_index=0,
            leader_epoch=epochs[0],
            partition_epoch=epochs[1],
            new_isr_with_epochs=tuple(
                BrokerState(broker_id=node, broker_epoch=epoch) for node, epoch in in_sync.items()
            ),
        )
        request = AlterPartitionRequest(
            broker_id=asker.node_id,
            broker_epoch=asker.epoch,
            topics=(TopicData(topic_id=_TOPIC_ID, partitions=(data,)),),
        )
        try:
            response = self._do(plan_alter_partition(self._image, request, _ALTER_VERSION, self._rules))
        except KafkaError:
            return None
        (partition,) = response.topics[0].partitions
        assert isinstance(partition, ResponsePartitionData)
        return partition

    def reassign(self, target: tuple[int, ...] | None) -> None:
        """Reassigns the partition to these replicas; None cancels the reassignment under way."""
        asked = ReassignablePartition(partition_index=0, replicas=target)
        request = AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(name=_TOPIC, partitions=(asked,)),)
        )
        self._do(plan_alter_reassignments(self._image, request, self._rules))

    def elect_preferred(self) -> None:
        self._do(plan_elect_leaders(self._image, ElectLeadersRequest(topic_partitions=None), self._rules))

    def set_minimum(self, min_in_sync: int) -> None:
        """Runs while somebody leads: where nobody does, the replicas that could lead are forgotten with it, as in
        Kafka."""
        if self.state.leader != NO_LEADER and min_in_sync != self.min_in_sync:
            self._apply(*configs.forgotten_eligible_leaders(self._image, (TOPIC_RESOURCE, _TOPIC)))
            self._offset += 1
            self.min_in_sync = min_in_sync
            self._tell_all()


def _first_registration(node: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=node,
        incarnation_id=bytes([node]) * 16,
        broker_epoch=0,
        end_points=(),
        features=(),
        rack=None,
        fenced=False,
        log_dirs=(bytes([node]) * 16,),
    )


def is_taken_back(code: int) -> bool:
    """Returns True for a response to `alter` that refuses, so that nothing of the request was done."""
    return code in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
