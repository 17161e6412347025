"""`strandline groups list` names the groups, with their state and protocol."""

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
    parser.description = "Lists the groups of all brokers."
    parser.add_argument(
        "--state", action="append", default=[], help="list only groups in this state, such as Stable or Empty"
    )
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        help="list only groups of this type, such as classic or consumer",
    )
    parser.add_argument("--names", action="store_true", help="print only the names, one on each line")
    add_connection(parser)
    add_json(parser, {"groups": [{"group": "text", "type": "text", "protocol": "text", "state": "text"}]})


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "groups")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    listed = await admin.list_groups(states=options.state, types=options.type)
    rows = [(each.group_id, each.type, each.protocol_type, each.state) for each in listed]
    if options.json:
        keys = ("group", "type", "protocol", "state")
        print_json({"groups": [dict(zip(keys, row, strict=True)) for row in rows]})
    elif options.names:
        show([row[0] for row in rows])
    elif rows:
        show(table(("GROUP", "TYPE", "PROTOCOL", "STATE"), rows))
    else:
        print("no groups")
    return DONE
