"""`strandline brokers`: the brokers with their leaders, replicas and disks."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, size, table

if TYPE_CHECKING:
    from strandline.client import Admin


BROKER_SHAPE: Final = {
    "node_id": "number",
    "host": "text",
    "port": "number",
    "rack": "text?",
    "fenced": "flag",
    "leaders": "number",
    "replicas": "number",
    "bytes": "number?",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists the brokers with their addresses, racks, numbers of leaders and replicas, and bytes on disk."
    )
    add_connection(parser)
    add_json(parser, {"cluster_id": "text", "brokers": [BROKER_SHAPE]})


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "cluster", "topics")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    rows = await look_at_brokers(admin)
    if options.json:
        print_json({"cluster_id": (await admin.describe_cluster()).cluster_id, "brokers": rows})
    else:
        show(broker_lines(rows))
    return DONE


async def look_at_brokers(admin: Admin) -> list[dict[str, Any]]:
    """Returns the brokers in the order of their ids, each of BROKER_SHAPE."""
    from strandline.client.errors import KafkaError

    cluster = await admin.describe_cluster(include_fenced=True)
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for topic in await admin.describe_all_topics():
        for each in topic.partitions:
            leaders[each.leader_id] += 1
            replicas.update(each.replicas)
    rows = []
    for node in sorted(cluster.nodes, key=lambda each: each.node_id):
        is_fenced = node.node_id in cluster.fenced
        used: int | None = None
        if not is_fenced:
            try:
                found = (await admin.describe_log_dirs([node.node_id]))[node.node_id]
                used = sum(sum(each.replicas.values()) for each in found)
            except KafkaError:
                pass  # the broker is away: its line shows no number
        rows.append(
            {
                "node_id": node.node_id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "fenced": is_fenced,
                "leaders": leaders[node.node_id],
                "replicas": replicas[node.node_id],
                "bytes": used,
            }
        )
    return rows


def broker_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Returns the brokers as a table."""
    cells = [
        (
            row["node_id"],
            f"{row['host']}:{row['port']}",
            row["rack"],
            "fenced" if row["fenced"] else "up",
            row["leaders"],
            row["replicas"],
            None if row["bytes"] is None else size(row["bytes"]),
        )
        for row in rows
    ]
    return table(("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "DISK"), cells)
