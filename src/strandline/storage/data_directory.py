"""A data directory of `strandline up`: it holds a single broker, or a cluster, or nothing yet.

A single broker's data directory is its log directory: partitions lie in it, under names that topics give them. A
cluster's holds the log directories of its nodes, where no topic can be named:

    <data>/.lock                held by the process that runs the cluster
    <data>/nodes/1/             the log directory of node 1
    <data>/nodes/1.properties   the settings that node 1 was last started with
    <data>/nodes/1.stderr       its log
    <data>/nodes.part/          nodes that are being formatted; renamed to `nodes` when all of them are

A partition's directory has a hyphen in its name (`<topic>-<partition>`, whatever is put after it), and neither `nodes`
nor `nodes.part` nor `.lock` has one. 0.1.0 kept node 1 in `<data>/node-1`, which is partition 1 of a topic `node` as
well. Such a directory is a node's if it has a meta.properties, which no partition has.

Functions named `check_…` and `plan_…` decide by the contents of a directory, and change nothing.
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
# Of files beside a node's log directory, with its name.
NODE_SETTINGS: Final = ".properties"
NODE_LOG: Final = ".stderr"

_NODE: Final = re.compile(r"[1-9][0-9]*")
_OLD_NODE: Final = re.compile(r"node-([1-9][0-9]*)")


class NodeDirectory(NamedTuple):
    """The log directory of one node of a cluster; the cluster's id is empty where meta.properties is not the node's."""

    node_id: int
    path: str
    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDirectory:
    """The contents of a data directory, as far as they decide who may open it."""

    path: str
    has_broker: bool = False
    has_partitions: bool = False
    nodes: tuple[NodeDirectory, ...] = ()
    old_nodes: tuple[NodeDirectory, ...] = ()
    # `nodes` is a file, or has something in it that is not a node.
    is_nodes_taken: bool = False

    @property
    def all_nodes(self) -> tuple[NodeDirectory, ...]:
        return self.nodes + self.old_nodes


class Move(NamedTuple):
    """A rename of a node's log directory; files beside it go with it."""

    old: str
    new: str


class ClusterPlan(NamedTuple):
    """How a data directory becomes that of a running cluster: which cluster it is, None for a new one."""

    cluster_id: str | None
    moves: tuple[Move, ...]


def node_directory(data: str, node_id: int) -> str:
    return f"{data}/{NODES}/{node_id}"


def contents_of(disk: Disk, path: str) -> DataDirectory:
    """Raises OSError for a directory that cannot be read; one that is not there holds nothing."""
    try:
        found = disk.names(path)
    except FileNotFoundError:
        return DataDirectory(path=path)
    inside = _names_of_nodes(disk, path)
    nodes = [(int(name), f"{path}/{NODES}/{name}") for name in inside or () if _NODE.fullmatch(name)]
    old_nodes = [
        (int(match[1]), f"{path}/{match[0]}") for name in found if (match := _OLD_NODE.fullmatch(name))
    ]
    known = tuple(_nodes(disk, nodes))
    return DataDirectory(
        path=path,
        has_broker=names.META_PROPERTIES in found,
        has_partitions=any(name.endswith("-0") for name in found),
        nodes=known,
        old_nodes=tuple(_nodes(disk, old_nodes)),
        is_nodes_taken=NODES in found and not known and inside != [],
    )


def _names_of_nodes(disk: Disk, path: str) -> list[str] | None:
    """The names in the directory `nodes`; None if there is no such directory."""
    try:
        return disk.names(f"{path}/{NODES}")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _nodes(disk: Disk, found: Iterable[tuple[int, str]]) -> Iterable[NodeDirectory]:
    for node_id, path in sorted(found):
        if disk.exists(f"{path}/{names.META_PROPERTIES}"):
            try:
                cluster_id = identity_of(disk, path, node_id).cluster_id
            except UnusableDirectory:
                cluster_id = ""
            yield NodeDirectory(node_id, path, cluster_id)


def user_of(disk: Disk, found: DataDirectory) -> int | None:
    """The process that runs the broker, the cluster or a node of it, 0 where its id is unknown; None if none does."""
    for path in (found.path, *(node.path for node in found.all_nodes)):
        holder = disk.lock_holder(f"{path}/{names.LOCK}")
        if holder is not None:
            return holder
    return None


def check_broker(found: DataDirectory, user: int | None) -> None:
    """Raises UnusableDirectory if a broker must not have its log directory here, because a cluster has."""
    if not found.all_nodes:
        return
    _check_one_tenant(found)
    if user is not None:
        raise _in_use(found, user)
    if len({node.cluster_id for node in found.all_nodes}) > 1:
        raise UnusableDirectory(
            f"{found.path} holds the log directories of nodes that are not of one cluster: "
            f"{_listed(node.path for node in found.all_nodes)}. Choose another directory"
        )
    raise UnusableDirectory(
        f"{found.path} holds {_cluster_text(found)}, and not a single broker: open it with "
        f"`{_command(found)}`, or choose another directory"
    )


def check_node_alone(path: str, around: DataDirectory) -> None:
    """Raises UnusableDirectory if a broker that is alone would open one node of a cluster.

    It would lead the metadata quorum without the others, and their logs would part for ever.
    """
    own = next((node for node in around.all_nodes if node.path == path), None)
    if own is not None and sum(node.cluster_id == own.cluster_id for node in around.all_nodes) > 1:
        raise UnusableDirectory(
            f"{path} holds node {own.node_id} of a cluster, which a single broker cannot open: open the cluster "
            f"with `{_command(around)}`, or choose another directory"
        )


def plan_cluster(found: DataDirectory, count: int, user: int | None) -> ClusterPlan:
    """How a cluster of `count` nodes opens the directory; raises UnusableDirectory if it must not."""
    _check_one_tenant(found)
    if user is not None:
        raise _in_use(found, user)
    if found.has_broker:
        raise UnusableDirectory(
            f"{found.path} holds a single broker, and not a cluster: open it with `{_command(found)}`, "
            "or choose another directory"
        )
    if not found.all_nodes:
        _check_room(found)
        return ClusterPlan(None, ())
    _check_layouts(found)
    if len(found.all_nodes) != count:
        raise UnusableDirectory(
            f"{found.path} holds {_cluster_text(found)}, not of {count}: give that number, or another directory"
        )
    moves = tuple(Move(node.path, node_directory(found.path, node.node_id)) for node in found.old_nodes)
    return ClusterPlan(found.all_nodes[0].cluster_id, moves)


def _check_room(found: DataDirectory) -> None:
    if found.has_partitions:
        raise UnusableDirectory(
            f"{found.path} has partitions but no meta.properties; it is not formatted over"
        )
    if found.is_nodes_taken:
        raise UnusableDirectory(
            f"{found.path}/{NODES}, where a cluster's nodes would be, has other things in it: "
            "choose another directory"
        )


def _check_layouts(found: DataDirectory) -> None:
    """A move that was interrupted left some nodes here and some there, but no node in both places."""
    new = {node.node_id: node for node in found.nodes}
    for old in found.old_nodes:
        if old.node_id in new:
            raise UnusableDirectory(
                f"{old.path} and {new[old.node_id].path} are both node {old.node_id}: two clusters share "
                f"{found.path}. Move {_listed(node.path for node in found.old_nodes)} into a directory of their own"
            )
    for node in found.all_nodes:
        if not node.cluster_id:
            raise UnusableDirectory(
                f"{node.path}/{names.META_PROPERTIES} is damaged, or not that of node {node.node_id}: bring it back, "
                "or choose another directory"
            )
        if node.cluster_id != found.all_nodes[0].cluster_id:
            raise UnusableDirectory(
                f"{found.all_nodes[0].path} and {node.path} belong to different clusters: move one cluster's "
                "nodes into a directory of their own"
            )


def _check_one_tenant(found: DataDirectory) -> None:
    """0.1.0 let a broker and a cluster have the same directory."""
    if not found.has_broker or not found.all_nodes:
        return
    moved = [node.path for node in found.old_nodes] + ([f"{found.path}/{NODES}"] if found.nodes else [])
    raise UnusableDirectory(
        f"{found.path} holds a single broker and {_cluster_text(found)}. Move {_listed(moved)} into a directory of "
        f"their own, DIRECTORY: `strandline up --nodes {len(found.all_nodes)} --data DIRECTORY` opens them there, and "
        f"`strandline up --data {shlex.quote(found.path)}` opens the broker"
    )


def _in_use(found: DataDirectory, user: int) -> UnusableDirectory:
    what = _cluster_text(found) if found.all_nodes else "a single broker"
    return UnusableDirectory(
        f"{found.path} is in use by {holder_text(user)}, which runs {what} there; stop it or choose another directory"
    )


def _cluster_text(found: DataDirectory) -> str:
    count = len({node.node_id for node in found.all_nodes})
    return f"a cluster of {count} node{'' if count == 1 else 's'}"


def _command(found: DataDirectory) -> str:
    """A command that opens it; a cluster of one node is a broker in a directory of its own."""
    match found.all_nodes:
        case ():
            options = f"--data {shlex.quote(found.path)}"
        case (only,):
            options = f"--data {shlex.quote(only.path)}"
        case several:
            options = f"--nodes {len(several)} --data {shlex.quote(found.path)}"
    return f"strandline up {options}"


def _listed(paths: Iterable[str]) -> str:
    *most, last = paths
    return f"{', '.join(most)} and {last}" if most else last


def data_directory_around(path: str) -> str | None:
    """The data directory in whose `nodes`, or as whose node, an absolute path would lie; None for any other path."""
    above, name = names.directory_of(path), path.rstrip("/").rpartition("/")[2]
    if name == NODES or _OLD_NODE.fullmatch(name):
        return above
    if _NODE.fullmatch(name) and above.rpartition("/")[2] == NODES:
        return names.directory_of(above)
    return None
