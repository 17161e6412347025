"""`strandline format`: formats the log directories of a node, once, before its first start."""

from __future__ import annotations

import argparse
import json

from strandline.base.ids import parse_uuid, uuid_text
from strandline.broker.metadata.raft_bootstrap import initial_voter
from strandline.cli.failures import fail
from strandline.cli.given_settings import read_settings
from strandline.cli.node.scram_users import parse_scram_user
from strandline.config import BrokerConfig, InvalidConfig
from strandline.config.addresses import parse_voter
from strandline.node import directories, launcher
from strandline.node.config_providers import broker_config
from strandline.node.disk import RealDisk
from strandline.node.random import RealRandom
from strandline.quorum.voters import Endpoint, ReplicaKey, Voter, VoterSet
from strandline.storage.directory import UnusableDirectory, is_formatted

_UUID_TEXT_LENGTH = 22


def format_node(options: argparse.Namespace) -> int:
    try:
        config = broker_config(read_settings(options.config))
    except (ValueError, InvalidConfig) as error:
        return fail(str(error))
    cluster_id = options.cluster_id or uuid_text(RealRandom().uuid())
    if len(cluster_id) != _UUID_TEXT_LENGTH or not cluster_id.replace("-", "").replace("_", "").isalnum():
        return fail(f"--cluster-id {cluster_id}: 22 characters, as `strandline format` makes them without it")
    try:
        voters = _first_voters(options, config)
        users = [parse_scram_user(text) for text in options.add_scram]
    except ValueError as error:
        return fail(str(error))
    paths = directories.directories_of(config)
    try:
        directories.check_directories(config)
        done = [path for path in paths if is_formatted(RealDisk(), path)]
    except UnusableDirectory as error:
        return fail(str(error))
    for path in done:
        present = directories.cluster_id_of(path)
        if not options.ignore_formatted:
            return fail(
                f"{path} is formatted already, for cluster {present}; --ignore-formatted leaves it unchanged"
            )
        if options.cluster_id is not None and present != options.cluster_id:
            return fail(f"{path} belongs to cluster {present}, not to {options.cluster_id}")
        cluster_id = present
    try:
        directories.format_if_empty(
            config, launcher.stderr_events(node=config.node_id, level="warn"), cluster_id, voters, users
        )
    except UnusableDirectory as error:
        return fail(str(error))
    except OSError as error:
        return fail(f"{error.filename or config.log_dirs[0]} cannot be formatted: {error.strerror}")
    formatted = [path for path in paths if path not in done]
    if options.json:
        print(json.dumps({"cluster_id": cluster_id, "node_id": config.node_id, "formatted": formatted}))
        return 0
    for path in formatted:
        print(f"formatted {path} for node {config.node_id} of cluster {cluster_id}")
    # A controller that joins a quorum that one controller has begun is not a voter of it yet.
    others = " --no-initial-controllers" if options.standalone else ""
    print(
        f"Format the other nodes with the same cluster id: strandline format --cluster-id {cluster_id}{others} "
        "--config ..."
    )
    return 0


def _first_voters(options: argparse.Namespace, config: BrokerConfig) -> VoterSet | None:
    """Returns the voters of a new quorum; None if the settings name them. Raises ValueError if options and settings
    contradict each other."""
    is_configured = bool(config.strings("controller.quorum.voters"))
    if is_configured and (options.standalone or options.initial_controllers):
        raise ValueError(
            "controller.quorum.voters and --standalone or --initial-controllers exclude one another: for voters that "
            "can change, remove controller.quorum.voters and give controller.quorum.bootstrap.servers"
        )
    if options.initial_controllers:
        return _parse_controllers(options.initial_controllers, config)
    if options.standalone:
        if not config.is_controller:
            raise ValueError("--standalone is for controllers: this node's process.roles is only broker")
        voter = initial_voter(config, RealRandom().uuid())
        if any(endpoint.port == 0 for endpoint in voter.endpoints):
            raise ValueError("--standalone needs a port in listeners that stays the same: it has 0")
        return VoterSet.of([voter])
    if config.is_controller and not is_configured and not options.no_initial_controllers:
        raise ValueError(
            "this controller has no controller.quorum.voters: give one of --standalone, --initial-controllers and "
            "--no-initial-controllers"
        )
    return None


def _parse_controllers(text: str, config: BrokerConfig) -> VoterSet:
    listener = config.strings("controller.listener.names")[0]
    voters: dict[int, Voter] = {}
    for entry in text.split(","):
        head, _, directory = entry.strip().rpartition(":")
        parsed = parse_voter(head)
        if parsed is None or parsed[0] < 0 or len(directory) != _UUID_TEXT_LENGTH:
            raise ValueError(f"--initial-controllers: {entry!r} is not id@host:port:directory")
        node_id, host, port = parsed
        if node_id in voters:
            raise ValueError(f"--initial-controllers: node {node_id} is there twice")
        try:
            key = ReplicaKey(node_id, parse_uuid(directory))
        except ValueError as error:
            raise ValueError(f"--initial-controllers: {directory!r} is not a directory id") from error
        voters[node_id] = Voter(key=key, endpoints=(Endpoint(listener, host, port),))
    return VoterSet.of(voters.values())
