"""`strandline log-dirs`: what the log directories of brokers hold."""

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
    parser.description = "Shows the log directories of brokers: space, replicas and the bytes of each topic."
    parser.add_argument(
        "--broker",
        type=int,
        action="append",
        metavar="NODE",
        help="show only this broker; repeat it for several",
    )
    parser.add_argument("--topic", action="append", metavar="TOPIC", help="show only replicas of this topic")
    parser.add_argument("--replicas", action="store_true", help="show a line for each replica")
    add_connection(parser)
    add_json(
        parser,
        {
            "log_dirs": [
                {
                    "broker": "number",
                    "path": "text",
                    "error": "text?",
                    "total_bytes": "number?",
                    "usable_bytes": "number?",
                    "replicas": [{"topic": "text", "partition": "number", "bytes": "number"}],
                }
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _describe, "cluster", "topics")


async def _describe(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.cli.failures import not_found
    from strandline.cli.topics.names import existing_topic

    known = [node.node_id for node in admin.brokers()]
    for node_id in options.broker or ():
        if node_id not in known:
            raise not_found(f"there is no broker {node_id}; there are: {', '.join(map(str, known))}")
    for name in options.topic or ():
        await existing_topic(admin, name)
    described = await admin.describe_log_dirs(options.broker, topics=options.topic)
    found = [
        {
            "broker": node_id,
            "path": each.path,
            "error": None if each.error is None else str(each.error),
            "total_bytes": each.total_bytes if each.total_bytes >= 0 else None,
            "usable_bytes": each.usable_bytes if each.usable_bytes >= 0 else None,
            "replicas": [
                {"topic": where.topic, "partition": where.partition, "bytes": count}
                for where, count in sorted(each.replicas.items())
            ],
        }
        for node_id, directories in sorted(described.items())
        for each in directories
    ]
    if options.json:
        print_json({"log_dirs": found})
        return DONE
    if options.replicas:
        rows = [
            (node_id, where.topic, where.partition, count, each.path)
            for node_id, directories in sorted(described.items())
            for each in directories
            for where, count in sorted(each.replicas.items())
        ]
        show(table(("BROKER", "TOPIC", "PARTITION", "BYTES", "DIRECTORY"), rows) or ["no replicas"])
        return DONE
    cells = [
        (
            node_id,
            each.path,
            "offline" if each.error is not None else "online",
            len(each.replicas),
            size(sum(each.replicas.values())),
            size(each.usable_bytes) if each.usable_bytes >= 0 else None,
            size(each.total_bytes) if each.total_bytes >= 0 else None,
        )
        for node_id, directories in sorted(described.items())
        for each in directories
    ]
    show(table(("BROKER", "DIRECTORY", "STATE", "REPLICAS", "USED", "FREE", "VOLUME"), cells))
    return DONE
