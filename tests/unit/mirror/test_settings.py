"""MirrorMaker 2's properties, and the mistakes that are told before anything starts."""

from __future__ import annotations

import pytest

from strandline.mirror.config.file import settings_of_text
from strandline.mirror.config.replication_policy import IdentityReplicationPolicy, ReplicationPolicy
from strandline.mirror.config.settings import MirrorConfigError, MirrorSettings, mirror_settings

CLUSTERS = {
    "clusters": "east, west",
    "east.bootstrap.servers": "east:9092",
    "west.bootstrap.servers": "west:9092",
}
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def settings(**more: str) -> MirrorSettings:
    named = {key.replace("__", "->").replace("_", "."): value for key, value in more.items()}
    return mirror_settings({**CLUSTERS, "east->west.enabled": "true", **named})


def test_the_seeds_properties_are_read() -> None:
    text = """
clusters=east,west
east.bootstrap.servers=east-broker1:9092,east-broker2:9092
west.bootstrap.servers=west-broker1:9092,west-broker2:9092
east->west.enabled=true
west->east.enabled=false # Active-passive: one direction only
east->west.topics=orders,payments,user-events
east->west.topics.exclude=.*internal.*,__.*
emit.checkpoints.enabled=true
emit.checkpoints.interval.seconds=10
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=10
replication.factor=3
""".replace("false # Active-passive: one direction only", "false")
    found = settings_of_text(text, is_yaml=False)
    (flow,) = found.flows
    assert flow.name == "east->west"
    assert flow.group_id == "strandline-mirror-east->west"
    assert flow.is_mirrored("orders")
    assert not flow.is_mirrored("other")
    assert not flow.is_mirrored("__consumer_offsets")
    assert flow.number("replication.factor") == 3
    assert flow.flag("sync.group.offsets.enabled")
    assert found.unknown == ()


def test_yaml_means_the_same() -> None:
    text = """
clusters:
  east: {bootstrap.servers: "east:9092"}
  west: {bootstrap.servers: "west:9092"}
flows:
  east->west: {topics: [orders, payments], sync.group.offsets.enabled: true}
defaults: {replication.factor: 1}
"""
    (flow,) = settings_of_text(text, is_yaml=True).flows
    assert flow.is_mirrored("payments")
    assert not flow.is_mirrored("other")
    assert flow.flag("sync.group.offsets.enabled")
    assert flow.number("replication.factor") == 1


def test_settings_of_one_kind_of_client_win() -> None:
    found = settings(
        east_security_protocol="SSL", east_consumer_fetch_max_bytes="5", east_producer_acks="all"
    )
    assert found.clusters["east"].of("consumer") == {
        "bootstrap.servers": "east:9092",
        "security.protocol": "SSL",
        "fetch.max.bytes": "5",
    }


def test_topics_of_the_target_do_not_go_back() -> None:
    (flow,) = settings().flows
    assert flow.target_topic("orders") == "east.orders"
    assert not flow.is_mirrored("west.orders")
    assert not flow.is_mirrored("north.west.orders")
    assert flow.is_mirrored("north.orders")
    assert flow.is_mirrored("heartbeats")


def test_policies_name_topics_as_mirrormaker_does() -> None:
    default, identity = ReplicationPolicy(), IdentityReplicationPolicy()
    assert default.original_topic("b.a.orders") == "orders"
    assert default.checkpoints_topic("east") == "east.checkpoints.internal"
    assert default.offset_syncs_topic("west") == "mm2-offset-syncs.west.internal"
    assert identity.remote_topic("east", "orders") == "orders"
    assert identity.remote_topic("east", "heartbeats") == "east.heartbeats"
    assert identity.topic_source("a.orders") is None
    assert identity.topic_source("east.heartbeats") == "east"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"clusters": "east"}, "two clusters or more"),
        ({"east.bootstrap.servers": ""}, "east.bootstrap.servers is missing"),
        ({"north->west.enabled": "true"}, "there is no cluster north"),
        ({"east->south.topics": "x"}, "there is no cluster south"),
        ({"east->east.enabled": "true"}, "cannot be mirrored to itself"),
        ({"east->west.enabled": "false"}, "no flow is enabled"),
        ({"east->west.enabled": "yes"}, "must be true or false"),
        ({"east->west.topics": "("}, "no regular expression"),
        ({"replication.factor": "many"}, "must be a whole number"),
        ({"emit.checkpoints.interval.seconds": "-1"}, "must be a number of seconds"),
        ({"offset-syncs.topic.location": "moon"}, "must be source or target"),
        ({"replication.policy.class": "com.example.Mine"}, "is not known"),
        (
            {"replication.policy.class": IDENTITY, "west->east.enabled": "true"},
            "records would go round in a circle: east->west->east",
        ),
    ],
)
def test_mistakes_are_told(more: dict[str, str], says: str) -> None:
    with pytest.raises(MirrorConfigError, match=says.replace("(", r"\(")):
        mirror_settings({**CLUSTERS, "east->west.enabled": "true", **more})


def test_identity_in_one_direction_and_in_a_chain_is_allowed() -> None:
    found = mirror_settings(
        {
            **CLUSTERS,
            "clusters": "east,west,north",
            "north.bootstrap.servers": "north:9092",
            "replication.policy.class": IDENTITY,
            "east->west.enabled": "true",
            "west->north.enabled": "true",
        }
    )
    assert [flow.name for flow in found.flows] == ["east->west", "west->north"]


def test_keys_that_nothing_reads_are_named() -> None:
    found = settings(**{"east->west.topcis": "orders", "nonsense": "1", "tasks_max": "4"})
    assert set(found.unknown) == {"east->west.topcis", "nonsense"}
