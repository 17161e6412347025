"""`strandline transactions list` names the transactional ids and their states."""

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
    parser.description = "Lists the transactions of all coordinators."
    parser.add_argument(
        "--state", action="append", default=[], help="list only transactions in this state, such as Ongoing"
    )
    parser.add_argument(
        "--producer-id",
        type=int,
        action="append",
        default=[],
        metavar="ID",
        help="list only transactions of this producer id",
    )
    add_connection(parser)
    add_json(
        parser, {"transactions": [{"transactional_id": "text", "producer_id": "number", "state": "text"}]}
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "producers")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    listed = await admin.list_transactions(states=options.state, producer_ids=options.producer_id)
    rows = [(each.transactional_id, each.producer_id, each.state) for each in listed]
    if options.json:
        keys = ("transactional_id", "producer_id", "state")
        print_json({"transactions": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        show(table(("TRANSACTIONAL ID", "PRODUCER", "STATE"), rows) or ["no transactions"])
    return DONE
