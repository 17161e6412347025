"""`strandline tokens create` makes a delegation token."""

from __future__ import annotations

import argparse
import base64
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import moment
from strandline.cli.tokens.fields import SHAPE, document_of, milliseconds, principal

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Creates a delegation token of the user that this command logs in as. Its id and HMAC are name and password "
        "for SCRAM. The HMAC is printed here and nowhere else: keep it safe."
    )
    parser.add_argument("--owner", type=principal, metavar="USER", help="a token of this user instead")
    parser.add_argument(
        "--renewer", type=principal, action="append", default=[], metavar="USER", help="who else may renew it"
    )
    parser.add_argument(
        "--max-life",
        type=milliseconds,
        default=-1,
        metavar="TIME",
        help="30m, 12h, 7d (default: the brokers')",
    )
    add_connection(parser)
    add_json(parser, {**SHAPE, "hmac": "text"})


def call(options: argparse.Namespace) -> int:
    return run(options, _create, "tokens")


async def _create(admin: Admin, options: argparse.Namespace) -> int:
    token = await admin.create_token(
        owner=options.owner, renewers=options.renewer, max_lifetime_ms=options.max_life
    )
    hmac = base64.b64encode(token.hmac).decode()
    if options.json:
        print_json({**document_of(token), "hmac": hmac})
    else:
        print(f"token {token.token_id} of {token.owner}, until {moment(token.expires_ms)}\nhmac  {hmac}")
    return DONE
