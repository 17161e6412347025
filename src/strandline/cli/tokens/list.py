"""`strandline tokens list` shows the delegation tokens that the user may see."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table
from strandline.cli.tokens.fields import HEAD, SHAPE, cells_of, document_of, principal

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists the delegation tokens that this user may see, without their HMACs."
    parser.add_argument(
        "--owner",
        type=principal,
        action="append",
        metavar="USER",
        help="list only tokens of this user; repeat it for several",
    )
    add_connection(parser)
    add_json(parser, {"tokens": [SHAPE]})


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "tokens")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    tokens = sorted(await admin.describe_tokens(options.owner), key=lambda each: each.issued_ms)
    if options.json:
        print_json({"tokens": [document_of(each) for each in tokens]})
    elif tokens:
        show(table(HEAD, map(cells_of, tokens)))
    else:
        print("no tokens; create one with `strandline tokens create`")
    return DONE
