"""A controller is what its records say: planning changes nothing, and every reader of the records knows the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.base.planned import Planned
from strandline.controller.brokers import plan_register, plan_unfence
from strandline.controller.configs import plan_alter_configs, plan_incremental_alter_configs
from strandline.controller.producer_ids import plan_allocate_producer_ids
from strandline.controller.state import ControllerState
from strandline.controller.topics import plan_create_partitions, plan_create_topics, plan_delete_topics
from strandline.wire.api.k19_create_topics import CreateTopicsRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.api.k33_alter_configs import AlterableConfig as Replacement
from strandline.wire.api.k33_alter_configs import AlterConfigsRequest
from strandline.wire.api.k33_alter_configs import AlterConfigsResource as ReplacedResource
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.records.framing import decode_metadata_record, encode_metadata_record
from tests.unit.controller.plans import Cluster, contents, registration, topic

from .effort import effort

NAMES = st.sampled_from(("a", "b", "c.d", "c_d", "bad name"))
KEYS = st.sampled_from(("retention.ms", "cleanup.policy", "log.retention.ms", "max.connections", "nonsense"))
VALUES = st.sampled_from((None, "", "5", "compact", "delete", "-1"))
RESOURCES = st.tuples(st.sampled_from((2, 4, 9)), st.sampled_from(("a", "b", "", "1", "x")))


class Histories(RuleBasedStateMachine):
    @initialize(racks=st.lists(st.sampled_from((None, "r", "s")), min_size=1, max_size=4))
    def begin(self, racks: list[str | None]) -> None:
        self.cluster = Cluster(*racks)
        self.brokers = len(racks)

    def plan(self, plan: Callable[[ControllerState], Planned[Any]]) -> None:
        before = contents(self.cluster.state)
        planned = plan(self.cluster.state)
        assert contents(self.cluster.state) == before, "planning changes nothing"
        self.cluster.commit(planned)

    @rule(
        names=st.lists(NAMES, min_size=1, max_size=3),
        partitions=st.integers(-2, 3),
        factor=st.integers(-2, 5),
        configs=st.dictionaries(KEYS, VALUES, max_size=2),
        validate=st.booleans(),
    )
    def create(
        self, names: list[str], partitions: int, factor: int, configs: dict[str, str | None], validate: bool
    ) -> None:
        topics = tuple(topic(name, partitions, factor, **configs) for name in names)
        request = CreateTopicsRequest(topics=topics, timeout_ms=1, validate_only=validate)
        self.plan(lambda s: plan_create_topics(s.image, s.configs, request, s.random))

    @rule(names=st.lists(NAMES, max_size=2), by_id=st.booleans())
    def delete(self, names: list[str], by_id: bool) -> None:
        ids = [t.topic_id for t in self.cluster.image.topics.values()][:1] if by_id else []
        request = DeleteTopicsRequest(
            topic_names=tuple(names),
            topics=tuple(DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids),
            timeout_ms=1,
        )
        self.plan(lambda s: plan_delete_topics(s.image, s.configs, request, 6))

    @rule(name=NAMES, count=st.integers(-1, 6))
    def grow(self, name: str, count: int) -> None:
        asked = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=(asked,), timeout_ms=1, validate_only=False)
        self.plan(lambda s: plan_create_partitions(s.image, request, s.random))

    @rule(resource=RESOURCES, key=KEYS, operation=st.integers(-1, 4), value=VALUES)
    def alter(self, resource: tuple[int, str], key: str, operation: int, value: str | None) -> None:
        change = AlterableConfig(name=key, config_operation=operation, value=value)
        asked = AlterConfigsResource(resource_type=resource[0], resource_name=resource[1], configs=(change,))
        request = IncrementalAlterConfigsRequest(resources=(asked,), validate_only=False)
        self.plan(lambda s: plan_incremental_alter_configs(s.image, s.configs, request))

    @rule(resource=RESOURCES, configs=st.dictionaries(KEYS, VALUES, max_size=2))
    def replace(self, resource: tuple[int, str], configs: dict[str, str | None]) -> None:
        given = tuple(Replacement(name=name, value=value) for name, value in configs.items())
        asked = ReplacedResource(resource_type=resource[0], resource_name=resource[1], configs=given)
        request = AlterConfigsRequest(resources=(asked,), validate_only=False)
        self.plan(lambda s: plan_alter_configs(s.image, s.configs, request))

    @rule()
    def allocate(self) -> None:
        self.plan(lambda s: plan_allocate_producer_ids(s.image, 1, 0))

    @rule(data=st.data(), incarnation=st.integers(1, 250))
    def register_again(self, data: st.DataObject, incarnation: int) -> None:
        node_id = data.draw(st.integers(1, self.brokers))
        again = registration(node_id, None, incarnation=incarnation)
        self.plan(lambda s: plan_register(s.image, again, len(self.cluster.log), s.rules))
        self.plan(lambda s: plan_unfence(s.image, node_id, s.rules))

    @invariant()
    def records_tell_everything(self) -> None:
        assert contents(self.cluster.rebuilt()) == contents(self.cluster.state)

    @invariant()
    def names_and_ids_agree(self) -> None:
        image = self.cluster.image
        assert {t.topic_id: t for t in image.topics.values()} == image.topics_by_id
        for name, found in image.topics.items():
            assert (found.name, sorted(found.partitions)) == (name, list(range(len(found.partitions))))

    def teardown(self) -> None:
        for record in self.cluster.log:
            assert decode_metadata_record(encode_metadata_record(record)) == record


Histories.TestCase.settings = effort(25)
TestHistories = Histories.TestCase
