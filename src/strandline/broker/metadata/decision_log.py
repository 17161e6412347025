"""The decisions of the active controller as events for the log: topics, elections, reassignments, configs, brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from strandline.config.describe import is_sensitive_broker_key
from strandline.controller.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ClusterImage,
)
from strandline.telemetry.events import Events
from strandline.wire.records import metadata as records
from strandline.wire.schema import Message

# At most so many of the partitions that get another leader by one decision are named.
_NAMED_MAX: Final = 5
_UNCHANGED: Final = -2
_RESOURCES: Final = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS_RESOURCE: "client metrics",
    GROUP_RESOURCE: "group",
}


class ControllerEvent(NamedTuple):
    text: str
    fields: Mapping[str, object]


def tell(events: Events, decisions: Iterable[ControllerEvent]) -> None:
    for text, fields in decisions:
        events.info(text, **fields)


def events_of(planned: Iterable[Message], image: ClusterImage) -> list[ControllerEvent]:
    """Returns the events of these records, by the image before they are applied."""
    found: list[ControllerEvent] = []
    elected: dict[str, int] = {}
    created: dict[bytes, str] = {}
    partitions: Counter[bytes] = Counter()
    configs: dict[str, list[str]] = {}  # the configs of topics that are created
    for record in planned:
        match record:
            case records.TopicRecord():
                created[record.topic_id] = record.name
            case records.PartitionRecord():
                partitions[record.topic_id] += 1
            case records.ConfigRecord() if _is_new_topic(record, image):
                configs.setdefault(record.resource_name, []).append(f"{record.name}={record.value}")
            case records.PartitionChangeRecord():
                topic = image.topics_by_id.get(record.topic_id)
                where = f"{topic.name if topic is not None else '?'}-{record.partition_id}"
                if record.leader != _UNCHANGED:
                    elected[where] = record.leader
                found += _reassignment(where, record)
            case _:
                found += _others(record, image)
    for topic_id, count in partitions.items():
        if topic_id in created:
            name = created[topic_id]
            own = {"configs": ", ".join(configs[name])} if name in configs else {}
            found.append(ControllerEvent("topic created", {"topic": name, "partitions": count, **own}))
        elif topic_id in image.topics_by_id:
            name = image.topics_by_id[topic_id].name
            found.append(ControllerEvent("partitions added", {"topic": name, "partitions": count}))
    if elected:
        found.append(_elections(elected))
    return found


def _is_new_topic(record: records.ConfigRecord, image: ClusterImage) -> bool:
    return record.resource_type == TOPIC_RESOURCE and record.resource_name not in image.topics


def _reassignment(where: str, record: records.PartitionChangeRecord) -> list[ControllerEvent]:
    if record.adding_replicas or record.removing_replicas:
        moves = {
            "adding": list(record.adding_replicas or ()),
            "removing": list(record.removing_replicas or ()),
        }
        return [ControllerEvent("reassignment begun", {"partition": where, **moves})]
    if record.replicas is not None:
        return [
            ControllerEvent("replicas reassigned", {"partition": where, "replicas": list(record.replicas)})
        ]
    return []


def _elections(elected: dict[str, int]) -> ControllerEvent:
    named = ", ".join(
        f"{where} to {'none' if leader < 0 else leader}"
        for where, leader in list(elected.items())[:_NAMED_MAX]
    )
    more = "" if len(elected) <= _NAMED_MAX else f" and {len(elected) - _NAMED_MAX} more"
    return ControllerEvent("leaders elected", {"partitions": len(elected), "leaders": named + more})


def _others(record: Message, image: ClusterImage) -> list[ControllerEvent]:
    match record:
        case records.RemoveTopicRecord():
            topic = image.topics_by_id.get(record.topic_id)
            return [ControllerEvent("topic deleted", {"topic": topic.name if topic is not None else "?"})]
        case records.ConfigRecord():
            kind = _RESOURCES.get(record.resource_type, f"type {record.resource_type}")
            is_hidden = record.resource_type == BROKER_RESOURCE and is_sensitive_broker_key(record.name)
            value = "(hidden)" if is_hidden and record.value is not None else record.value
            resource = {"resource": f"{kind} {record.resource_name or '(default)'}", "key": record.name}
            if value is None:
                return [ControllerEvent("setting removed", resource)]
            return [ControllerEvent("setting changed", {**resource, "value": value})]
        case records.RegisterBrokerRecord():
            return [
                ControllerEvent(
                    "broker registered", {"broker": record.broker_id, "epoch": record.broker_epoch}
                )
            ]
        case records.UnregisterBrokerRecord():
            return [ControllerEvent("broker unregistered", {"broker": record.broker_id})]
        case records.BrokerRegistrationChangeRecord() if record.fenced:
            return [
                ControllerEvent(
                    "broker fenced" if record.fenced > 0 else "broker unfenced", {"broker": record.broker_id}
                )
            ]
        case records.BrokerRegistrationChangeRecord() if record.in_controlled_shutdown:
            return [ControllerEvent("broker shuts down", {"broker": record.broker_id})]
        case records.FeatureLevelRecord():
            return [ControllerEvent("feature level", {"feature": record.name, "level": record.feature_level})]
        case _:
            return []
