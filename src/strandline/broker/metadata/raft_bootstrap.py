"""Makes the parts of a node in the metadata quorum: its copy of the log, its voters, and its controller if it is
one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.metadata.publisher import MetadataPublisher
from strandline.broker.metadata.raft_endpoints import Address, RaftEndpoints
from strandline.broker.metadata.raft_log import (
    BOOTSTRAP_FILE,
    PARTITION,
    RaftLog,
    records_of_snapshot,
    render_snapshot,
    snapshot_name,
)
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.node_context import NodeContext
from strandline.config import BrokerConfig, DynamicConfigs, TopicConfig
from strandline.config.addresses import parse_address, parse_voter
from strandline.controller.features import bootstrap_records
from strandline.controller.state import ControllerState
from strandline.ports.process import Process
from strandline.quorum.messages import OffsetAndEpoch
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import DYNAMIC_VERSION, UNKNOWN_DIRECTORY, Endpoint, ReplicaKey, Voter, VoterSet
from strandline.storage import names
from strandline.storage.directory import LogDirectory, UnusableDirectory, identity_of
from strandline.storage.files import FileTable
from strandline.wire.records.metadata import AccessControlEntryRecord, UserScramCredentialRecord
from strandline.wire.schema import Message

_BOOTSTRAPPED: Final = (UserScramCredentialRecord, AccessControlEntryRecord)


def controller_runtime_of(node: NodeContext, cluster_id: str) -> ControllerRuntime | None:
    """Returns the runtime of the controller; None on a node that is only a broker."""
    config = node.config
    if not config.is_controller:
        return None
    return ControllerRuntime(
        new_state=lambda: ControllerState(DynamicConfigs(config), node.random),
        clock=node.clock,
        network=node.network_to_brokers,
        events=node.events,
        tasks=node.tasks,
        node_id=node.node_id,
        cluster_id=cluster_id,
        session_timeout_s=config.int("broker.session.timeout.ms") / 1000,
        inter_broker_listener=config.inter_broker_listener_name,
        bootstrap=_users_of_bootstrap(node),
    )


def _users_of_bootstrap(node: NodeContext) -> tuple[Message, ...]:
    """Returns the users that `format --add-scram`, Strandline's or Kafka's, wrote for a new cluster, and ACLs for
    tests."""
    path = f"{metadata_directory(node.config)}/{BOOTSTRAP_FILE}"
    if not node.disk.exists(path):
        return ()
    records = records_of_snapshot(node.disk.read(path))
    return tuple(record for record in records if isinstance(record, _BOOTSTRAPPED))


def metadata_directory(config: BrokerConfig) -> str:
    return config.optional_text("metadata.log.dir") or config.log_dirs[0]


def take_directories(node: NodeContext, directories: list[LogDirectory]) -> None:
    """Takes the directories of log.dirs. If some cannot be read, the others serve, but not without the metadata log.

    Each goes into `directories` as soon as it is taken, so that it can be released if another is refused.
    """
    for path in node.config.log_dirs:
        directories.append(LogDirectory(node.disk, path, node.node_id))
    for directory in directories:
        for note in directory.notes:
            node.events.warn("repaired", what=note)
        if directory.offline_because is None:
            continue
        has_metadata = directory.path == metadata_directory(node.config)
        if has_metadata or all(d.offline_because is not None for d in directories):
            raise UnusableDirectory(f"{directory.offline_because}, and the node cannot do without it")
        node.events.error(
            "log directory offline",
            directory=directory.path,
            error=directory.offline_because,
            advice="repair it and start the node again; if it is lost, remove it from log.dirs",
        )


def _directory_id(node: NodeContext, directories: Sequence[LogDirectory]) -> bytes:
    """Returns the id of the directory with the metadata log, which may be only for that."""
    path = metadata_directory(node.config)
    for directory in directories:
        if directory.path == path:
            return directory.directory_id
    return identity_of(node.disk, path, node.node_id).directory_id


def raft_node_of(
    node: NodeContext,
    *,
    files: FileTable,
    process: Process,
    cluster_id: str,
    directories: Sequence[LogDirectory],
    publisher: MetadataPublisher,
) -> RaftNode:
    """Returns this node's part in the metadata quorum, with its copy of the log opened."""
    config = node.config
    own = initial_voter(config, _directory_id(node, directories))
    configured = configured_voters(config, own.key)
    store = RaftLog(
        node.disk,
        files,
        metadata_directory(config),
        _log_config(node),
        node.clock.wall_ms(),
        is_alone=len(configured) == 1,
    )
    for note in store.notes:
        node.events.warn("repaired", what=note)
    return RaftNode(
        disk=node.disk,
        clock=node.clock,
        random=node.random,
        workers=node.workers,
        network=node.network_to_controllers,
        process=process,
        events=node.events,
        store=store,
        own=own,
        configured=configured,
        addresses=_addresses(config, own, configured),
        cluster_id=cluster_id,
        settings=QuorumSettings(
            election_timeout_s=config.int("controller.quorum.election.timeout.ms") / 1000,
            fetch_timeout_s=config.int("controller.quorum.fetch.timeout.ms") / 1000,
            request_timeout_s=config.int("controller.quorum.request.timeout.ms") / 1000,
        ),
        joins_by_itself=config.flag("controller.quorum.auto.join.enable"),
        listener=publisher,
    )


def _log_config(node: NodeContext) -> TopicConfig:
    """Returns the configuration of the metadata log, whose segments do not follow the settings of topics."""
    segments = {
        "segment.bytes": str(node.config.int("metadata.log.segment.bytes")),
        "segment.ms": str(node.config.int("metadata.log.segment.ms")),
        "preallocate": "false",
    }
    return TopicConfig(node.configs.topic_values(segments))


def configured_voters(config: BrokerConfig, own: ReplicaKey) -> VoterSet:
    """Returns the voters of controller.quorum.voters; none if the voters are in the log."""
    listener = config.strings("controller.listener.names")[0]
    voters = []
    for entry in config.strings("controller.quorum.voters"):
        parsed = parse_voter(entry)
        if parsed is not None:
            node_id, host, port = parsed
            key = own if node_id == own.replica_id else ReplicaKey(node_id, UNKNOWN_DIRECTORY)
            voters.append(Voter(key=key, endpoints=(Endpoint(listener, host, port),)))
    return VoterSet.of(voters)


def has_others(config: BrokerConfig) -> bool:
    """Returns True if other nodes may join, which they cannot in a configured quorum of one."""
    return len(config.strings("controller.quorum.voters")) != 1


def _own_endpoints(config: BrokerConfig) -> tuple[Endpoint, ...]:
    if not config.is_controller:
        return ()
    return tuple(
        Endpoint(listener.name, listener.host or "localhost", listener.port)
        for listener in config.advertised_controller_listeners
    )


def _addresses(config: BrokerConfig, own: Voter, configured: VoterSet) -> RaftEndpoints:
    listener = config.strings("controller.listener.names")[0]
    servers = [parse_address(entry) for entry in config.strings("controller.quorum.bootstrap.servers")]
    bootstrap = tuple(Address(*server) for server in servers if server is not None)
    me = configured.by_id(own.key.replica_id) or own
    advertised = next((e for e in me.endpoints if e.listener == listener), None)
    return RaftEndpoints(listener, bootstrap, advertised)


def initial_voter(config: BrokerConfig, directory_id: bytes) -> Voter:
    """Returns this node as a voter of the quorum, which only a controller can be."""
    return Voter(key=ReplicaKey(config.node_id, directory_id), endpoints=_own_endpoints(config))


def quorum_file(now_ms: int, voters: VoterSet) -> tuple[str, bytes]:
    """Returns name and contents of the first snapshot, which has the first voters."""
    path = f"{names.partition_directory(PARTITION)}/{snapshot_name(OffsetAndEpoch(0, 0))}"
    return path, render_snapshot((), now_ms, 0, DYNAMIC_VERSION, voters)


def bootstrap_file(now_ms: int, users: Sequence[Message] = ()) -> tuple[str, bytes]:
    """Returns name and contents of the file with which a new cluster's metadata begins."""
    return BOOTSTRAP_FILE, render_snapshot((*bootstrap_records(), *users), now_ms, 0)
