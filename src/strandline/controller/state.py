"""The state from which the controller decides every change of the cluster's metadata.

The functions `plan_…` of this package read the parts of the state that they need. They return the records of a change
and its response, and change nothing. Only `apply` changes the state. The runtime appends a plan's records, applies them
here at once, so that the next plan sees them, and responds when they are committed.
"""

from __future__ import annotations

from strandline.config import DynamicConfigs
from strandline.controller.brokers import TopicRules
from strandline.controller.features import uses_eligible_leaders
from strandline.controller.image import TOPIC_RESOURCE, ClusterImage
from strandline.ports.random import Random
from strandline.wire.records.metadata import ConfigRecord, RemoveTopicRecord
from strandline.wire.schema import Message


class ControllerState:
    """The image of the cluster, the configs that follow from it, and the other facts that plans need."""

    def __init__(self, configs: DynamicConfigs, random: Random) -> None:
        self.image = ClusterImage()
        self.configs = configs
        self.random = random
        self.rules = TopicRules(
            min_in_sync=lambda topic: configs.topic(topic).min_insync_replicas,
            allows_unclean=lambda topic: configs.topic(topic).unclean_leader_election_enable,
            uses_eligible=lambda: uses_eligible_leaders(self.image),
        )

    def apply(self, record: Message) -> None:
        """Applies a record to the state."""
        apply_to(self.image, self.configs, record)


def apply_to(image: ClusterImage, configs: DynamicConfigs, record: Message) -> None:
    """Applies a record to an image and to the configs that follow from it."""
    match record:
        case ConfigRecord():
            image.apply(record)
            key = (record.resource_type, record.resource_name)
            configs.set_overrides(*key, image.configs.get(key, {}))
        case RemoveTopicRecord():
            name = image.topics_by_id[record.topic_id].name
            image.apply(record)
            configs.set_overrides(TOPIC_RESOURCE, name, {})
        case _:
            image.apply(record)
