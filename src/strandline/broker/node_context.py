"""The facts and ports that the parts of a node have in common.

Nothing here has parts of the node behind it: whatever else a part needs, it is given by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from strandline.broker.tasks import TaskScope
from strandline.config import BrokerConfig, DynamicConfigs
from strandline.controller.image import ClusterImage
from strandline.ports.clock import Clock
from strandline.ports.disk import Disk
from strandline.ports.network import Network
from strandline.ports.random import Random
from strandline.ports.web import Web
from strandline.ports.workers import Workers
from strandline.telemetry.counters import Counters
from strandline.telemetry.events import Events
from strandline.telemetry.request_metrics import RequestMetrics
from strandline.telemetry.topic_metrics import AllTopicsMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    node_id: int
    config: BrokerConfig  # as the node was started with
    configs: DynamicConfigs  # as they are now
    image: ClusterImage
    clock: Clock
    random: Random
    events: Events
    counters: Counters
    requests: RequestMetrics
    topics: AllTopicsMetrics
    tasks: TaskScope
    workers: Workers
    disk: Disk
    network: Network
    # The same with the encryption and the login that the other nodes' listeners ask for.
    network_to_brokers: Network
    network_to_controllers: Network
    web: Web | None = None

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with this id; empty if there is none."""
        topic = self.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def int_config(self, key: str) -> int:
        """The present value of a setting that may change while the node runs."""
        value = self.configs.broker_value(key)
        assert isinstance(value, int)
        return value
