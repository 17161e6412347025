"""Puts together a node's part in the metadata quorum: its copy of the log, its voters, its controller if it is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.controller_runtime import ControllerRuntime
from strandline.broker.metadata_store import BOOTSTRAP_FILE, MetadataStore, render_snapshot
from strandline.broker.metadata_view import MetadataView
from strandline.broker.quorum_node import Address, QuorumNode
from strandline.config import BrokerConfig, DynamicConfigs, TopicConfig
from strandline.config.addresses import parse_voter
from strandline.controller.controller import Controller
from strandline.ports.random import Random
from strandline.quorum.messages import ReplicaKey
from strandline.quorum.settings import QuorumSettings
from strandline.storage.directory import LogDirectory

if TYPE_CHECKING:
    from strandline.broker.broker import Broker


def controller_runtime_of(broker: Broker) -> ControllerRuntime | None:
    """None on a node that is only a broker."""
    config = broker.config
    if not config.is_controller:
        return None
    return ControllerRuntime(
        new_machine=lambda: Controller(DynamicConfigs(config), broker.random),
        clock=broker.clock,
        network=broker.network,
        events=broker.events,
        tasks=broker.tasks,
        node_id=broker.node_id,
        cluster_id=broker.cluster_id,
        session_timeout_s=config.int("broker.session.timeout.ms") / 1000,
    )


def quorum_of(broker: Broker, directory: LogDirectory) -> QuorumNode:
    config = broker.config
    voters = voters_of(config)
    store = MetadataStore(
        broker.disk,
        broker.files,
        config.optional_text("metadata.log.dir") or directory.path,
        _log_config(broker),
        broker.clock.wall_ms(),
        is_alone=len(voters) <= 1,
    )
    for note in store.notes:
        broker.events.warn("repaired", what=note)
    runtime = broker.controller_runtime
    quorum = QuorumNode(
        disk=broker.disk,
        clock=broker.clock,
        random=broker.random,
        workers=broker.workers,
        network=broker.network,
        process=broker.process,
        events=broker.events,
        store=store,
        own=ReplicaKey(broker.node_id, directory.directory_id),
        voters=voters,
        cluster_id=broker.cluster_id,
        settings=QuorumSettings(
            election_timeout_s=config.int("controller.quorum.election.timeout.ms") / 1000,
            fetch_timeout_s=config.int("controller.quorum.fetch.timeout.ms") / 1000,
        ),
        listener=MetadataView(
            broker.image, broker.configs, runtime, broker.image_changed, broker.controller_changed
        ),
    )
    if runtime is not None:
        runtime.quorum = quorum
    return quorum


def _log_config(broker: Broker) -> TopicConfig:
    """The metadata log has segments of its own, whatever is set for topics."""
    segments = {
        "segment.bytes": str(broker.config.int("metadata.log.segment.bytes")),
        "segment.ms": str(broker.config.int("metadata.log.segment.ms")),
        "preallocate": "false",
    }
    return TopicConfig(broker.configs.topic_values(segments))


def voters_of(config: BrokerConfig) -> dict[int, Address]:
    """Node ids and addresses of the controllers."""
    voters = {}
    for entry in config.strings("controller.quorum.voters"):
        parsed = parse_voter(entry)
        if parsed is not None:
            node_id, host, port = parsed
            voters[node_id] = Address(host, port)
    if not voters and config.is_controller:
        listener = config.controller_listeners[0]
        voters[config.node_id] = Address(listener.host or "localhost", listener.port)
    return voters


def bootstrap_file(now_ms: int, random: Random, config: BrokerConfig) -> tuple[str, bytes]:
    """Name and contents of the file with which a new cluster's metadata begins."""
    records = Controller(DynamicConfigs(config), random).bootstrap_records()
    return BOOTSTRAP_FILE, render_snapshot(records, now_ms, 0)
