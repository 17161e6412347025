"""The facts and ports that the parts of a node have in common.

Nothing here is a part of the node: a part gets its other collaborators by name.
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
    config: BrokerConfig  # of the node's start
    configs: DynamicConfigs  # the present ones
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
    # The same network with the encryption and the login that the listeners of other nodes need.
    network_to_brokers: Network
    network_to_controllers: Network
    web: Web | None = None

    def topic_name(self, topic_id: bytes) -> str:
        """Returns the name of the topic with this id; an empty text if there is none."""
        topic = self.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def int_config(self, key: str) -> int:
        """Returns the present value of a setting that may change while the node runs."""
        value = self.configs.broker_value(key)
        assert isinstance(value, int)
        return value
