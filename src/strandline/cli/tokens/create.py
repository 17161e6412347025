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
        "Creates a delegation token for the user of this command. The token's id and HMAC are the name and password "
        "for SCRAM logins. The HMAC is printed only here: keep it safe."
    )
    parser.add_argument(
        "--owner", type=principal, metavar="USER", help="create the token for this user instead"
    )
    parser.add_argument(
        "--renewer",
        type=principal,
        action="append",
        default=[],
        metavar="USER",
        help="another user who may renew the token; repeat it for several",
    )
    parser.add_argument(
        "--max-life",
        type=milliseconds,
        default=-1,
        metavar="TIME",
        help="the longest life of the token, such as 30m, 12h or 7d (default: the brokers' maximum)",
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
