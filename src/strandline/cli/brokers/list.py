"""`strandline brokers`: the brokers with their leaders, replicas and disks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, size, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists the brokers: address, rack, how many partitions each leads and holds, bytes on disk."
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "cluster_id": "text",
            "brokers": [
                {
                    "node_id": "number",
                    "host": "text",
                    "port": "number",
                    "rack": "text?",
                    "fenced": "flag",
                    "leaders": "number",
                    "replicas": "number",
                    "bytes": "number?",
                }
            ],
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "cluster", "topics")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.errors import KafkaError

    cluster = await admin.describe_cluster(include_fenced=True)
    partitions = [each for topic in await admin.describe_all_topics() for each in topic.partitions]
    rows = []
    for node in sorted(cluster.nodes, key=lambda each: each.node_id):
        is_fenced = node.node_id in cluster.fenced
        used: int | None = None
        if not is_fenced:
            try:
                found = (await admin.describe_log_dirs([node.node_id]))[node.node_id]
                used = sum(sum(each.replicas.values()) for each in found)
            except KafkaError:
                pass  # a broker that is away now: its line says so by the missing number
        rows.append(
            {
                "node_id": node.node_id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "fenced": is_fenced,
                "leaders": sum(each.leader_id == node.node_id for each in partitions),
                "replicas": sum(node.node_id in each.replicas for each in partitions),
                "bytes": used,
            }
        )
    if options.json:
        print_json({"cluster_id": cluster.cluster_id, "brokers": rows})
        return DONE
    cells = [
        (
            row["node_id"],
            f"{row['host']}:{row['port']}",
            row["rack"],
            "fenced" if row["fenced"] else "up",
            row["leaders"],
            row["replicas"],
            None if row["bytes"] is None else size(int(str(row["bytes"]))),
        )
        for row in rows
    ]
    show(table(("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "DISK"), cells))
    return DONE
