"""`strandline cluster status` and `wait`: is every replica in sync, and may a node be restarted now?

Both ask any broker of the cluster, Strandline's or Apache Kafka's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.arguments import seconds
from strandline.cli.connection import CONNECT_SECONDS_MAX
from strandline.cli.exit_codes import USAGE
from strandline.cli.failures import exit_code_of

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.net.metadata import PartitionInfo

_CLEAR_LINE: Final = "\x1b[K"
_LOOK_AGAIN_S: Final = 0.5
# Of a long list of partitions as many are named in text; `--json` has them all.
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
    # Of a node that is to be restarted: what could not be written while it is away, and what nobody else has.
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
    """`minimums` are the topics' min.insync.replicas."""
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


def add_arguments(cluster: argparse.ArgumentParser) -> None:
    actions = cluster.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = actions.add_parser(
        "status",
        help="what is under-replicated or without a leader",
        description="Shows the nodes of a cluster and the partitions that are not in order. "
        "The exit code is 0 if every partition has a leader and all its replicas "
        "are in sync, 1 if not, and 3 if no broker can be reached.",
    )
    wait = actions.add_parser(
        "wait",
        help="until nothing is under-replicated",
        description="Waits until every partition has a leader and all its replicas are in sync: between two steps of "
        "a rolling restart, for instance. The exit code is 1 if that takes too long.",
    )
    for parser in (status, wait):
        parser.add_argument(
            "--bootstrap-server",
            default="localhost:9092",
            metavar="HOST:PORT",
            help="(default: localhost:9092)",
        )
        parser.add_argument(
            "--before-restart",
            type=int,
            metavar="NODE",
            help="also whether all can be written while this node is away: enough others are in sync",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
    status.add_argument(
        "--timeout", type=seconds, default=30.0, metavar="SECONDS", help="for a response (default: 30)"
    )
    wait.add_argument(
        "--timeout",
        type=seconds,
        default=600.0,
        metavar="SECONDS",
        help="give up after this time (default: 600)",
    )


def call(options: argparse.Namespace) -> int:
    from strandline.client.errors import KafkaError

    try:
        health, is_late = asyncio.run(_look_or_wait(options))
    except (KafkaError, ValueError) as error:
        print(f"strandline: {error}", file=sys.stderr)
        return exit_code_of(error) if isinstance(error, KafkaError) else USAGE
    finally:
        if sys.stderr.isatty():
            print("\r", end=_CLEAR_LINE, file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(_as_json(health)))
    else:
        print("\n".join(_lines(health, options.before_restart)))
    if is_late:
        print(f"strandline: not whole after {options.timeout:g} s", file=sys.stderr)
    return 0 if health.is_whole else 1


async def _look_or_wait(options: argparse.Namespace) -> tuple[Health, bool]:
    """The last look, and whether time was up before the cluster was whole."""
    from strandline.client import Admin
    from strandline.client.errors import KafkaError

    deadline = time.monotonic() + options.timeout
    connect_s = options.timeout if options.action == "wait" else min(options.timeout, CONNECT_SECONDS_MAX)
    is_waiting = options.action == "wait"
    settings = {"bootstrap.servers": options.bootstrap_server}
    async with Admin(settings, default_api_timeout_ms=max(round(connect_s * 1000), 1)) as admin:
        while True:
            left_s = deadline - time.monotonic()
            try:
                health = await _look(admin, options.before_restart, max(left_s, 1.0))
            except KafkaError as error:
                # A topic may go between two questions, and a broker that is restarted does not answer.
                if not is_waiting or not error.retriable or left_s <= 0:
                    raise
            else:
                if health.is_whole or not is_waiting or left_s <= 0:
                    return health, is_waiting and not health.is_whole
                if sys.stderr.isatty():
                    left = len(health.under_replicated or health.without_leader or health.needs_node)
                    print(f"\r{left} partitions to wait for", end=_CLEAR_LINE, file=sys.stderr, flush=True)
            await asyncio.sleep(_LOOK_AGAIN_S)


async def _look(admin: Admin, before_restart_of: int | None, timeout_s: float) -> Health:
    from strandline.client.admin.configs import ConfigResource

    described = await admin.describe_cluster(include_fenced=True, timeout=timeout_s)
    known = sorted(node.node_id for node in described.nodes)
    if before_restart_of is not None and before_restart_of not in known:
        raise ValueError(f"There is no node {before_restart_of}: {', '.join(map(str, known))} are there.")
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
    """The node that leads the quorum. Metadata names any broker as the controller, for it forwards requests."""
    from strandline.client.errors import UnsupportedVersionError

    try:
        return (await admin.describe_quorum(timeout=timeout_s)).leader_id
    except UnsupportedVersionError:
        return named  # a cluster with ZooKeeper


def _as_json(health: Health) -> dict[str, Any]:
    return {
        "cluster_id": health.cluster_id,
        "controller_id": health.controller_id,
        "nodes": health.nodes,
        "fenced": health.fenced,
        "partitions": health.partition_count,
        "is_whole": health.is_whole,
        "without_leader": health.without_leader,
        "under_replicated": health.under_replicated,
        "below_min_insync_replicas": health.below_minimum,
        "needs_node": health.needs_node,
        "only_on_node": health.only_on_node,
    }


def _lines(health: Health, before_restart_of: int | None) -> list[str]:
    away = f", fenced: {', '.join(map(str, health.fenced))}" if health.fenced else ""
    nodes = ", ".join(map(str, health.nodes))
    lines = [f"cluster {health.cluster_id}: nodes {nodes}, controller {health.controller_id}{away}"]
    if health.is_whole:
        lines.append(f"{health.partition_count} partitions, every replica in sync")
    for what, names in (
        ("without a leader", health.without_leader),
        ("under-replicated", health.under_replicated),
        ("below min.insync.replicas, and refused with acks=all", health.below_minimum),
        (f"would be refused with acks=all without node {before_restart_of}", health.needs_node),
        (f"would be away with node {before_restart_of}, for no other has them", health.only_on_node),
    ):
        if names:
            lines.append(f"{len(names)} of {health.partition_count} partitions {what}:")
            lines += [f"  {name}" for name in names[:_NAMED_MAX]]
            if len(names) > _NAMED_MAX:
                lines.append(f"  and {len(names) - _NAMED_MAX} more")
    return lines
