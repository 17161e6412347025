"""`strandline transactions describe` shows the state and the partitions of transactions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import moment, show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Shows transactions with their partitions, their start and their timeout."
    parser.add_argument(
        "transactional_id", nargs="+", metavar="TRANSACTIONAL_ID", help="the transactional ids"
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "transactions": [
                {
                    "transactional_id": "text",
                    "state": "text",
                    "producer_id": "number",
                    "epoch": "number",
                    "timeout_ms": "number",
                    "start": "number",
                    "partitions": [{"topic": "text", "partition": "number"}],
                }
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _describe, "producers")


async def _describe(admin: Admin, options: argparse.Namespace) -> int:
    found = await admin.describe_transactions(options.transactional_id)
    if options.json:
        rows = [
            {
                "transactional_id": each.transactional_id,
                "state": each.state,
                "producer_id": each.producer_id,
                "epoch": each.epoch,
                "timeout_ms": each.timeout_ms,
                "start": each.start_ms,
                "partitions": [where._asdict() for where in each.partitions],
            }
            for each in found.values()
        ]
        print_json({"transactions": rows})
        return DONE
    cells = [
        (
            each.transactional_id,
            each.state,
            each.producer_id,
            each.epoch,
            f"{each.timeout_ms / 1000:g} s",
            moment(each.start_ms),
            [str(where) for where in each.partitions],
        )
        for each in found.values()
    ]
    show(table(("TRANSACTIONAL ID", "STATE", "PRODUCER", "EPOCH", "TIMEOUT", "BEGAN", "PARTITIONS"), cells))
    return DONE
