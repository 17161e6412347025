"""`strandline producers`: shows the producers that the leaders of partitions know."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.groups.scope import add_scope, partitions_in_scope
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import moment, show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the producers that the leaders of partitions know, and their open transactions."
    )
    add_scope(parser)
    add_connection(parser)
    add_json(
        parser,
        {
            "producers": [
                {
                    "topic": "text",
                    "partition": "number",
                    "producer_id": "number",
                    "epoch": "number",
                    "last_sequence": "number",
                    "last_timestamp": "number",
                    "coordinator_epoch": "number",
                    "transaction_start_offset": "number?",
                }
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    if not options.topic:
        raise usage("name partitions with --topic TOPIC or --topic TOPIC:0,1")
    return run(options, _producers, "producers", "topics")


async def _producers(admin: Admin, options: argparse.Namespace) -> int:
    partitions = await partitions_in_scope(admin, options, [])
    found = await admin.describe_producers(partitions)
    rows = [
        {
            "topic": where.topic,
            "partition": where.partition,
            "producer_id": each.producer_id,
            "epoch": each.epoch,
            "last_sequence": each.last_sequence,
            "last_timestamp": each.last_timestamp_ms,
            "coordinator_epoch": each.coordinator_epoch,
            "transaction_start_offset": each.transaction_start_offset
            if each.transaction_start_offset >= 0
            else None,
        }
        for where, producers in sorted(found.items())
        for each in producers
    ]
    if options.json:
        print_json({"producers": rows})
        return DONE
    cells = [
        (
            *list(row.values())[:5],
            moment(int(str(row["last_timestamp"]))),
            row["transaction_start_offset"],
        )
        for row in rows
    ]
    head = ("TOPIC", "PARTITION", "PRODUCER", "EPOCH", "SEQUENCE", "LAST WRITE", "TRANSACTION SINCE OFFSET")
    show(table(head, cells) or ["no producers"])
    return DONE
