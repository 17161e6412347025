"""`strandline tokens expire` ends the life of a delegation token."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import run
from strandline.cli.tokens.fields import add_period, show_end

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Expires a token, at once or after a time."
    add_period(parser, "expire after this time (default: at once)")


def call(options: argparse.Namespace) -> int:
    return run(options, _expire, "tokens")


async def _expire(admin: Admin, options: argparse.Namespace) -> int:
    expires_ms = await admin.expire_token(options.hmac, period_ms=options.period)
    return show_end(options, expires_ms, "the token ends at")
