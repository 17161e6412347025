"""`strandline cluster status`: a cluster on one screen, Strandline's or Apache Kafka's."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from strandline.cli.brokers.list import BROKER_SHAPE, broker_lines, look_at_brokers
from strandline.cli.cluster.health import SHAPE, as_json, head_of, lines_of, look
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import coloured, count_of

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows a cluster on one screen: brokers, quorum, topics, groups, reassignments, and the partitions that are "
        "not in order. The exit code is 0 if every partition has a leader and all its replicas are in sync, 1 if not, "
        "and 3 if no broker can be reached."
    )
    add_before_restart(parser)
    add_connection(parser)
    add_json(
        parser,
        {
            **SHAPE,
            "brokers": [BROKER_SHAPE],
            "topics": "number",
            "groups": {"<state>": "number"},
            "reassigning": "number",
            "quorum": {"leader": "number?", "voters": ["number"], "lag_max": "number?"},
        },
    )


def add_before_restart(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--before-restart",
        type=int,
        metavar="NODE",
        help="check too whether all partitions can be written while this node is away",
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _status, "cluster", "topics", "configs", "groups")


async def _status(admin: Admin, options: argparse.Namespace) -> int:
    health = await look(admin, options.before_restart, options.timeout)
    brokers = await look_at_brokers(admin)
    more = await _more(admin)
    if options.json:
        print_json({**as_json(health), "brokers": brokers, **more})
        return DONE if health.is_whole else FAILED
    states = ", ".join(f"{count} {state.lower()}" for state, count in sorted(more["groups"].items()))
    quorum = more["quorum"]
    lines = [head_of(health), *(f"  {line}" for line in broker_lines(brokers))]
    if quorum["leader"] is not None:
        voters = ", ".join(map(str, quorum["voters"]))
        lines.append(f"quorum: leader {quorum['leader']}, voters {voters}, lag at most {quorum['lag_max']}")
    lines.append(f"topics: {more['topics']}, groups: {states or 'none'}")
    if more["reassigning"]:
        lines.append(
            f"{count_of(more['reassigning'], 'partition')} being moved (`strandline reassign status`)"
        )
    state, *rest = lines_of(health, options.before_restart)[1:] or [""]
    lines += [coloured(state, "green" if health.is_whole else "red"), *rest]
    print("\n".join(lines))
    return DONE if health.is_whole else FAILED


async def _more(admin: Admin) -> dict[str, Any]:
    """Returns the state of the cluster besides its partitions, as far as the cluster has APIs for it."""
    from strandline.client.errors import AuthorizationError, UnsupportedVersionError

    quorum: dict[str, Any] = {"leader": None, "voters": [], "lag_max": None}
    reassigning = 0
    groups: Counter[str] = Counter()
    try:
        described = await admin.describe_quorum()
        ends = [each.log_end_offset for each in described.voters]
        quorum = {
            "leader": described.leader_id,
            "voters": sorted(each.replica_id for each in described.voters),
            "lag_max": max(ends, default=0) - min(ends, default=0),
        }
        reassigning = len(await admin.list_reassignments())
        groups = Counter(each.state or "unknown" for each in await admin.list_groups())
    except (AuthorizationError, UnsupportedVersionError):
        pass  # a cluster with ZooKeeper, or a user without the permission: the rest is shown
    return {
        "topics": len(await admin.list_topics()),
        "groups": dict(groups),
        "reassigning": reassigning,
        "quorum": quorum,
    }
