"""`strandline tokens renew`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import moment
from strandline.cli.tokens.fields import hmac, milliseconds

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lets a token live for another period."
    parser.add_argument("hmac", type=hmac, metavar="HMAC", help="as `tokens create` printed it")
    parser.add_argument(
        "--period", type=milliseconds, default=-1, metavar="TIME", help="for how long (default: the brokers')"
    )
    add_connection(parser)
    add_json(parser, {"expires": "number"})


def call(options: argparse.Namespace) -> int:
    return run(options, _renew, "tokens")


async def _renew(admin: Admin, options: argparse.Namespace) -> int:
    expires_ms = await admin.renew_token(options.hmac, period_ms=options.period)
    if options.json:
        print_json({"expires": expires_ms})
    else:
        print(f"the token lives until {moment(expires_ms)}")
    return DONE
