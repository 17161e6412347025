"""Judges the health of a cluster: whether every replica is in sync, and whether a node may be restarted now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.failures import not_found

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.net.metadata import PartitionInfo

# Text names at most this many partitions of a list; `--json` names all.
_NAMED_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Partitions by name, as `topic-0`."""

    cluster_id: str
    controller_id: int
    nodes: tuple[int, ...]
    fenced: tuple[int, ...]
    partition_count: int
    without_leader: tuple[str, ...]
    under_replicated: tuple[str, ...]
    below_minimum: tuple[str, ...]
    # For a node that will be restarted: the partitions that could not be written without it, and those that no other
    # node has.
    needs_node: tuple[str, ...] = ()
    only_on_node: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not (self.without_leader or self.under_replicated or self.needs_node)


def judge(
    partitions: Iterable[PartitionInfo],
    minimums: Mapping[str, int],
    *,
    cluster_id: str,
    controller_id: int,
    nodes: tuple[int, ...],
    fenced: tuple[int, ...],
    before_restart_of: int | None = None,
) -> Health:
    """Returns the health of a cluster from its partitions. `minimums` are the topics' min.insync.replicas."""
    count = 0
    without_leader, under_replicated, below_minimum, needs_node, only_on_node = [], [], [], [], []
    for each in partitions:
        count += 1
        name = f"{each.topic}-{each.partition}"
        minimum = min(minimums[each.topic], len(each.replicas))
        if each.leader_id < 0:
            without_leader.append(name)
        if len(each.in_sync) < len(each.replicas):
            under_replicated.append(name)
        if len(each.in_sync) < minimum:
            below_minimum.append(name)
        if before_restart_of in each.in_sync:
            if len(each.replicas) == 1:
                only_on_node.append(name)
            elif len(each.in_sync) - 1 < minimum:
                needs_node.append(name)
    return Health(
        cluster_id=cluster_id,
        controller_id=controller_id,
        nodes=nodes,
        fenced=fenced,
        partition_count=count,
        without_leader=tuple(without_leader),
        under_replicated=tuple(under_replicated),
        below_minimum=tuple(below_minimum),
        needs_node=tuple(needs_node),
        only_on_node=tuple(only_on_node),
    )


async def look(admin: Admin, before_restart_of: int | None, timeout_s: float) -> Health:
    from strandline.client.admin.configs import ConfigResource

    described = await admin.describe_cluster(include_fenced=True, timeout=timeout_s)
    known = sorted(node.node_id for node in described.nodes)
    if before_restart_of is not None and before_restart_of not in known:
        raise not_found(f"there is no node {before_restart_of}: {', '.join(map(str, known))} are there")
    names = await admin.list_topics(include_internal=True, timeout=timeout_s)
    topics = await admin.describe_topics(names, timeout=timeout_s)
    minimum = "min.insync.replicas"
    resources = [ConfigResource.topic(name) for name in names]
    configs = await admin.describe_configs(resources, names=[minimum], timeout=timeout_s) if names else {}
    return judge(
        (partition for topic in topics.values() for partition in topic.partitions),
        {resource.name: int(entries[minimum].value or 1) for resource, entries in configs.items()},
        cluster_id=described.cluster_id,
        controller_id=await _active_controller(admin, described.controller_id, timeout_s),
        nodes=tuple(node_id for node_id in known if node_id not in described.fenced),
        fenced=tuple(sorted(described.fenced)),
        before_restart_of=before_restart_of,
    )


async def _active_controller(admin: Admin, named: int, timeout_s: float) -> int:
    """Returns the node that leads the quorum. The controller in Metadata may be any broker, because each forwards
    requests."""
    from strandline.client.errors import UnsupportedVersionError

    try:
        return (await admin.describe_quorum(timeout=timeout_s)).leader_id
    except UnsupportedVersionError:
        return named  # a cluster with ZooKeeper


SHAPE: Final = {
    "cluster_id": "text",
    "controller_id": "number",
    "nodes": ["number"],
    "fenced": ["number"],
    "partitions": "number",
    "is_whole": "flag",
    "without_leader": ["text"],
    "under_replicated": ["text"],
    "below_min_insync_replicas": ["text"],
    "needs_node": ["text"],
    "only_on_node": ["text"],
}


def as_json(health: Health) -> dict[str, Any]:
    return {
        "cluster_id": health.cluster_id,
        "controller_id": health.controller_id,
        "nodes": list(health.nodes),
        "fenced": list(health.fenced),
        "partitions": health.partition_count,
        "is_whole": health.is_whole,
        "without_leader": list(health.without_leader),
        "under_replicated": list(health.under_replicated),
        "below_min_insync_replicas": list(health.below_minimum),
        "needs_node": list(health.needs_node),
        "only_on_node": list(health.only_on_node),
    }


def head_of(health: Health) -> str:
    """Returns the cluster in one line."""
    away = f", fenced: {', '.join(map(str, health.fenced))}" if health.fenced else ""
    nodes = ", ".join(map(str, health.nodes))
    return f"cluster {health.cluster_id}: nodes {nodes}, controller {health.controller_id}{away}"


def lines_of(health: Health, before_restart_of: int | None) -> list[str]:
    """Returns the state of the partitions as lines for people."""
    lines = [head_of(health)]
    if health.is_whole:
        lines.append(f"{health.partition_count} partitions, every replica in sync")
    for what, names in (
        ("without a leader", health.without_leader),
        ("under-replicated", health.under_replicated),
        ("below min.insync.replicas, and refused with acks=all", health.below_minimum),
        (f"would be refused with acks=all without node {before_restart_of}", health.needs_node),
        (f"would be away with node {before_restart_of}, because no other node has them", health.only_on_node),
    ):
        if names:
            lines.append(f"{len(names)} of {health.partition_count} partitions {what}:")
            lines += [f"  {name}" for name in names[:_NAMED_MAX]]
            if len(names) > _NAMED_MAX:
                lines.append(f"  and {len(names) - _NAMED_MAX} more")
    return lines
