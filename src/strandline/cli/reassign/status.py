"""`strandline reassign status`: shows the partitions that are being moved."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Shows the partitions that are being moved."
    add_connection(parser)
    add_json(
        parser,
        {
            "partitions": [
                {
                    "topic": "text",
                    "partition": "number",
                    "replicas": ["number"],
                    "adding": ["number"],
                    "removing": ["number"],
                }
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _status, "cluster")


async def _status(admin: Admin, options: argparse.Namespace) -> int:
    rows = [
        (each.topic, each.partition, list(move.replicas), list(move.adding), list(move.removing))
        for each, move in sorted((await admin.list_reassignments()).items())
    ]
    if options.json:
        keys = ("topic", "partition", "replicas", "adding", "removing")
        print_json({"partitions": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        head = ("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING")
        show(table(head, rows) or ["nothing is being moved"])
    return DONE
