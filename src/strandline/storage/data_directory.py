"""A data directory of `strandline up`: it holds a single broker, or a cluster, or nothing yet.

A single broker's data directory is its log directory: the partitions are in it, named after their topics. A cluster's
data directory holds the log directories of its nodes, under names that no partition can have:

    <data>/.lock                held by the process that runs the cluster
    <data>/nodes/1/             the log directory of node 1
    <data>/nodes/1.properties   the settings that node 1 was last started with
    <data>/nodes/1.stderr       its log
    <data>/nodes.part/          nodes that are being formatted; renamed to `nodes` when all of them are

A partition's directory has a hyphen in its name (`<topic>-<partition>`, whatever is put after it), and neither `nodes`
nor `nodes.part` nor `.lock` has one. 0.1.0 kept node 1 in `<data>/node-1`, which is partition 1 of a topic `node` as
well. Such a directory is a node's if it has a meta.properties, which no partition has.

The functions `check_…` and `plan_…` decide by the contents of a directory, and change nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from strandline.ports.disk import Disk
from strandline.storage import names
from strandline.storage.directory import UnusableDirectory, holder_text, identity_of

NODES: Final = "nodes"
NODES_IN_PREPARATION: Final = "nodes.part"
# The suffixes of files beside a node's log directory.
NODE_SETTINGS: Final = ".properties"
NODE_LOG: Final = ".stderr"

_NODE: Final = re.compile(r"[1-9][0-9]*")
_OLD_NODE: Final = re.compile(r"node-([1-9][0-9]*)")


class NodeDirectory(NamedTuple):
    """The log directory of one node of a cluster; the cluster's id is empty if meta.properties is not the node's."""

    node_id: int
    path: str
    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDirectory:
    """The contents of a data directory that decide who may open it."""

    path: str
    has_broker: bool = False
    has_partitions: bool = False
    nodes: tuple[NodeDirectory, ...] = ()
    old_nodes: tuple[NodeDirectory, ...] = ()
    # True if `nodes` is a file, or has an entry that is not a node.
    is_nodes_taken: bool = False

    @property
    def all_nodes(self) -> tuple[NodeDirectory, ...]:
        return self.nodes + self.old_nodes


class Move(NamedTuple):
    """A rename of a node's log directory and of the files beside it."""

    old: str
    new: str


class ClusterPlan(NamedTuple):
    """The steps by which a data directory becomes that of a running cluster; `cluster_id` is None for a new one."""

    cluster_id: str | None
    moves: tuple[Move, ...]


def node_directory(data: str, node_id: int) -> str:
    return f"{data}/{NODES}/{node_id}"


def contents_of(disk: Disk, path: str) -> DataDirectory:
    """Returns the contents of a data directory; one that does not exist is empty. Raises OSError if it cannot be
    read."""
    try:
        file_names = disk.names(path)
    except FileNotFoundError:
        return DataDirectory(path=path)
    inside = _names_of_nodes(disk, path)
    nodes = [(int(name), f"{path}/{NODES}/{name}") for name in inside or () if _NODE.fullmatch(name)]
    old_nodes = [
        (int(match[1]), f"{path}/{match[0]}") for name in file_names if (match := _OLD_NODE.fullmatch(name))
    ]
    known = tuple(_nodes(disk, nodes))
    return DataDirectory(
        path=path,
        has_broker=names.META_PROPERTIES in file_names,
        has_partitions=any(name.endswith("-0") for name in file_names),
        nodes=known,
        old_nodes=tuple(_nodes(disk, old_nodes)),
        is_nodes_taken=NODES in file_names and not known and inside != [],
    )


def _names_of_nodes(disk: Disk, path: str) -> list[str] | None:
    """Returns the names in the directory `nodes`; None if there is no such directory."""
    try:
        return disk.names(f"{path}/{NODES}")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _nodes(disk: Disk, paths: Iterable[tuple[int, str]]) -> Iterable[NodeDirectory]:
    for node_id, path in sorted(paths):
        if disk.exists(f"{path}/{names.META_PROPERTIES}"):
            try:
                cluster_id = identity_of(disk, path, node_id).cluster_id
            except UnusableDirectory:
                cluster_id = ""
            yield NodeDirectory(node_id, path, cluster_id)


def user_of(disk: Disk, data: DataDirectory) -> int | None:
    """Returns the id of the process that runs the broker, the cluster or a node of it; 0 if the id is unknown, None if
    none runs."""
    for path in (data.path, *(node.path for node in data.all_nodes)):
        holder = disk.lock_holder(f"{path}/{names.LOCK}")
        if holder is not None:
            return holder
    return None


def check_broker(data: DataDirectory, user: int | None) -> None:
    """Raises UnusableDirectory if the directory belongs to a cluster, so that no broker may use it as its log
    directory."""
    if not data.all_nodes:
        return
    _check_one_tenant(data)
    if user is not None:
        raise _in_use(data, user)
    if len({node.cluster_id for node in data.all_nodes}) > 1:
        raise UnusableDirectory(
            f"{data.path} holds the log directories of nodes that are not of one cluster: "
            f"{_listed(node.path for node in data.all_nodes)}. Choose another directory"
        )
    raise UnusableDirectory(
        f"{data.path} holds {_cluster_text(data)}, and not a single broker: open it with "
        f"`{_command(data)}`, or choose another directory"
    )


def check_node_alone(path: str, around: DataDirectory) -> None:
    """Raises UnusableDirectory if a single broker would open the log directory of one node of a cluster.

    It would lead the metadata quorum without the others, and their logs would diverge for ever.
    """
    own = next((node for node in around.all_nodes if node.path == path), None)
    if own is not None and sum(node.cluster_id == own.cluster_id for node in around.all_nodes) > 1:
        raise UnusableDirectory(
            f"{path} holds node {own.node_id} of a cluster, which a single broker cannot open: open the cluster "
            f"with `{_command(around)}`, or choose another directory"
        )


def plan_cluster(data: DataDirectory, count: int, user: int | None) -> ClusterPlan:
    """Returns the plan by which a cluster of `count` nodes opens the directory; raises UnusableDirectory if it must
    not."""
    _check_one_tenant(data)
    if user is not None:
        raise _in_use(data, user)
    if data.has_broker:
        raise UnusableDirectory(
            f"{data.path} holds a single broker, and not a cluster: open it with `{_command(data)}`, "
            "or choose another directory"
        )
    if not data.all_nodes:
        _check_room(data)
        return ClusterPlan(None, ())
    _check_layouts(data)
    if len(data.all_nodes) != count:
        raise UnusableDirectory(
            f"{data.path} holds {_cluster_text(data)}, not of {count}: give that number, or another directory"
        )
    moves = tuple(Move(node.path, node_directory(data.path, node.node_id)) for node in data.old_nodes)
    return ClusterPlan(data.all_nodes[0].cluster_id, moves)


def _check_room(data: DataDirectory) -> None:
    if data.has_partitions:
        raise UnusableDirectory(
            f"{data.path} has partitions but no meta.properties; it is not formatted over"
        )
    if data.is_nodes_taken:
        raise UnusableDirectory(
            f"{data.path}/{NODES}, where a cluster's nodes would be, has other files in it: "
            "choose another directory"
        )


def _check_layouts(data: DataDirectory) -> None:
    """Raises UnusableDirectory if a node is in both places. A move that was interrupted leaves each node in one of
    them."""
    new = {node.node_id: node for node in data.nodes}
    for old in data.old_nodes:
        if old.node_id in new:
            raise UnusableDirectory(
                f"{old.path} and {new[old.node_id].path} are both node {old.node_id}: two clusters share "
                f"{data.path}. Move {_listed(node.path for node in data.old_nodes)} into a directory of their own"
            )
    for node in data.all_nodes:
        if not node.cluster_id:
            raise UnusableDirectory(
                f"{node.path}/{names.META_PROPERTIES} is damaged, or not that of node {node.node_id}: bring it back, "
                "or choose another directory"
            )
        if node.cluster_id != data.all_nodes[0].cluster_id:
            raise UnusableDirectory(
                f"{data.all_nodes[0].path} and {node.path} belong to different clusters: move one cluster's "
                "nodes into a directory of their own"
            )


def _check_one_tenant(data: DataDirectory) -> None:
    """Raises UnusableDirectory if a broker and a cluster share the directory, which 0.1.0 allowed."""
    if not data.has_broker or not data.all_nodes:
        return
    moved = [node.path for node in data.old_nodes] + ([f"{data.path}/{NODES}"] if data.nodes else [])
    raise UnusableDirectory(
        f"{data.path} holds a single broker and {_cluster_text(data)}. Move {_listed(moved)} into a directory of "
        f"their own, DIRECTORY: `strandline up --nodes {len(data.all_nodes)} --data DIRECTORY` opens them there, and "
        f"`strandline up --data {shlex.quote(data.path)}` opens the broker"
    )


def _in_use(data: DataDirectory, user: int) -> UnusableDirectory:
    what = _cluster_text(data) if data.all_nodes else "a single broker"
    return UnusableDirectory(
        f"{data.path} is in use by {holder_text(user)}, which runs {what} there; stop it or choose another directory"
    )


def _cluster_text(data: DataDirectory) -> str:
    count = len({node.node_id for node in data.all_nodes})
    return f"a cluster of {count} node{'' if count == 1 else 's'}"


def _command(data: DataDirectory) -> str:
    """Returns a command that opens the directory; a cluster of one node is a broker in a directory of its own."""
    match data.all_nodes:
        case ():
            options = f"--data {shlex.quote(data.path)}"
        case (only,):
            options = f"--data {shlex.quote(only.path)}"
        case several:
            options = f"--nodes {len(several)} --data {shlex.quote(data.path)}"
    return f"strandline up {options}"


def _listed(paths: Iterable[str]) -> str:
    *most, last = paths
    return f"{', '.join(most)} and {last}" if most else last


def data_directory_around(path: str) -> str | None:
    """Returns the data directory that an absolute path would belong to as a node or in `nodes`; None for any other
    path."""
    above, name = names.directory_of(path), path.rstrip("/").rpartition("/")[2]
    if name == NODES or _OLD_NODE.fullmatch(name):
        return above
    if _NODE.fullmatch(name) and above.rpartition("/")[2] == NODES:
        return names.directory_of(above)
    return None
