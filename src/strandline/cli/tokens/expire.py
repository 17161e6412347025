"""`strandline tokens expire`."""

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
    parser.description = "Ends a token, at once or after a time."
    parser.add_argument("hmac", type=hmac, metavar="HMAC", help="as `tokens create` printed it")
    parser.add_argument(
        "--period", type=milliseconds, default=-1, metavar="TIME", help="after this time (default: at once)"
    )
    add_connection(parser)
    add_json(parser, {"expires": "number"})


def call(options: argparse.Namespace) -> int:
    return run(options, _expire, "tokens")


async def _expire(admin: Admin, options: argparse.Namespace) -> int:
    expires_ms = await admin.expire_token(options.hmac, period_ms=options.period)
    if options.json:
        print_json({"expires": expires_ms})
    else:
        print(f"the token ends at {moment(expires_ms)}")
    return DONE
