"""`strandline tokens renew` gives a delegation token more time."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import run
from strandline.cli.tokens.fields import add_period, show_end

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Extends the life of a token by a period."
    add_period(parser, "the period (default: that of the brokers)")


def call(options: argparse.Namespace) -> int:
    return run(options, _renew, "tokens")


async def _renew(admin: Admin, options: argparse.Namespace) -> int:
    expires_ms = await admin.renew_token(options.hmac, period_ms=options.period)
    return show_end(options, expires_ms, "the token lives until")
