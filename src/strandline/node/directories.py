"""The log directories of a real node: whose they are, and their first formatting."""

from __future__ import annotations

import os
from collections.abc import Sequence

from strandline.base.ids import uuid_text
from strandline.broker.metadata.raft_bootstrap import (
    bootstrap_file,
    has_others,
    metadata_directory,
    quorum_file,
)
from strandline.config import BrokerConfig
from strandline.config.java import trim
from strandline.node.clock import RealClock
from strandline.node.disk import RealDisk
from strandline.node.random import RealRandom
from strandline.quorum.voters import VoterSet
from strandline.storage import checkpoints, names
from strandline.storage.data_directory import (
    NODES,
    check_broker,
    check_node_alone,
    contents_of,
    data_directory_around,
    user_of,
)
from strandline.storage.directory import (
    UnusableDirectory,
    format_directory,
    is_formatted,
    is_unformatted,
    take_lock,
)
from strandline.telemetry.events import Events
from strandline.wire.schema import Message


def directories_of(config: BrokerConfig) -> tuple[str, ...]:
    """Returns every directory that has to be formatted. The metadata log may have a directory of its own."""
    return tuple(dict.fromkeys((*config.log_dirs, metadata_directory(config))))


def only_log_directory(path: str) -> str:
    """Returns the value of log.dirs for one directory; raises UnusableDirectory if that text would be read as another
    list."""
    if "," in path:
        raise UnusableDirectory(
            f"{path} has a comma, and log.dirs is a list of directories with commas between them: choose a path "
            "without a comma"
        )
    if path != trim(path):
        raise UnusableDirectory(
            f"{path!r} begins or ends with a blank, which does not count in log.dirs: choose a path without it"
        )
    return path


def check_directories(config: BrokerConfig) -> None:
    """Raises UnusableDirectory if this node must not use a directory, because of who else has it."""
    # A broker whose only controller is another node has others, too.
    is_alone = config.is_broker and config.is_controller and not has_others(config)
    for path in directories_of(config):
        try:
            _check_tenants(os.path.realpath(path), is_alone=is_alone)
        except NotADirectoryError as error:
            if len(directories_of(config)) == 1:
                raise not_a_directory(path) from error
        except OSError:  # its disk does not respond; the node may do without it, and says so
            continue


def not_a_directory(path: str) -> UnusableDirectory:
    return UnusableDirectory(f"{path} is not a directory: choose a path where one is or can be made")


def _check_tenants(path: str, *, is_alone: bool) -> None:
    disk = RealDisk()
    found = contents_of(disk, path)
    home = data_directory_around(path)
    if found.all_nodes:
        check_broker(found, user_of(disk, found))
    elif home is not None:
        around = contents_of(disk, home)
        if path == f"{home}/{NODES}" and around.nodes:
            check_broker(around, user_of(disk, around))
        elif is_alone:
            check_node_alone(path, around)


def unformatted_directories(config: BrokerConfig) -> list[str]:
    """Returns the directories that a one-node cluster has to format; raises UnusableDirectory if the operator has to
    decide."""
    directories = directories_of(config)
    missing = [path for path in directories if is_unformatted(RealDisk(), path)]
    if missing and len(missing) < len(directories):
        # An empty directory may be a disk that is not mounted: formatting it would hide the data of that disk.
        raise UnusableDirectory(
            f"{missing[0]} is not formatted, and others of this node are. If its disk is not mounted, mount it; "
            "if it is new, run `strandline format --ignore-formatted --config FILE`"
        )
    if missing and (has_others(config) or not config.is_controller):
        # Only a node that is alone can choose its cluster's id.
        raise UnusableDirectory(
            f"{missing[0]} is not formatted. Run `strandline format --config FILE --cluster-id ID` once on "
            "each node of the cluster, with the same id; a controller without controller.quorum.voters "
            "also needs --standalone, --initial-controllers or --no-initial-controllers"
        )
    return missing


def format_if_empty(
    config: BrokerConfig,
    events: Events,
    cluster_id: str | None = None,
    voters: VoterSet | None = None,
    users: Sequence[Message] = (),
) -> None:
    """Formats the directories that have never been used.

    With `voters` the cluster begins with them in its metadata log; this node's metadata directory gets the id that the
    set gives it, if it is one of them. `users` can log in by SCRAM from the beginning; rules of
    access may be among them.
    """
    disk, random = RealDisk(), RealRandom()
    directories = directories_of(config)
    missing = [path for path in directories if not is_formatted(disk, path)]
    if not missing:
        return
    check_directories(config)
    for path in missing:
        if contents_of(disk, path).has_partitions:
            raise UnusableDirectory(f"{path} has partitions but no meta.properties; it is not formatted over")
    if len(missing) < len(directories):
        present = next(path for path in directories if path not in missing)
        cluster_id = cluster_id_of(present)
    identity = cluster_id or uuid_text(random.uuid())
    for path in missing:
        _format(disk, config, path, identity, voters if path == metadata_directory(config) else None)
        events.info("formatted", directory=path, cluster=identity)
    first = metadata_directory(config)
    name, contents = bootstrap_file(RealClock().wall_ms(), users)
    if not disk.exists(f"{first}/{name}"):
        disk.write_whole(f"{first}/{name}", contents)


def _format(
    disk: RealDisk, config: BrokerConfig, path: str, cluster_id: str, voters: VoterSet | None
) -> None:
    """Formats a directory under its lock, so that two processes that start at the same time do not format it twice."""
    disk.make_directory(path)
    take_lock(disk, path)
    try:
        if is_formatted(disk, path):
            raise UnusableDirectory(f"{path} has just been formatted by another process; start again")
        directory_id = RealRandom().uuid()
        if voters is not None:
            # Before meta.properties: a directory that is formatted has its voters.
            name, contents = quorum_file(RealClock().wall_ms(), voters)
            disk.make_directory(os.path.dirname(f"{path}/{name}"))
            disk.write_whole(f"{path}/{name}", contents)
            own = voters.by_id(config.node_id)
            directory_id = directory_id if own is None else own.key.directory_id
        format_directory(disk, path, cluster_id=cluster_id, node_id=config.node_id, directory_id=directory_id)
    finally:
        disk.unlock(f"{path}/{names.LOCK}")


def cluster_id_of(path: str) -> str:
    """Returns the id of the cluster that a formatted directory belongs to."""
    return checkpoints.parse_properties(RealDisk().read(f"{path}/{names.META_PROPERTIES}"))["cluster.id"]
