"""`strandline features`: the feature levels of a cluster, and their change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import key_values
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import usage
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Shows the finalized and supported levels of features, or changes them."
    parser.add_argument(
        "level",
        nargs="*",
        metavar="FEATURE=LEVEL",
        help="the levels to set; without any the levels are shown",
    )
    parser.add_argument(
        "--downgrade", action="store_true", help="lower levels if no metadata is lost by that"
    )
    parser.add_argument(
        "--unsafe-downgrade", action="store_true", help="lower levels even if metadata is lost by that"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and only say whether the change would succeed"
    )
    add_yes(parser)
    add_connection(parser)
    add_json(
        parser,
        {
            "features": [{"name": "text", "finalized": "number?", "min": "number?", "max": "number?"}],
            "epoch": "number",
        },
    )


def call(options: argparse.Namespace) -> int:
    try:
        options.levels = {key: int(value) for key, value in key_values(options.level, "features").items()}
    except ValueError as error:
        raise usage(f"features: a level is a number: {error}") from error
    return run(options, _features, "cluster")


async def _features(admin: Admin, options: argparse.Namespace) -> int:
    if options.levels:
        changes = ", ".join(f"{name} to {level}" for name, level in options.levels.items())
        if not options.dry_run and not confirmed(options, f"Set {changes}?"):
            return FAILED
        kind = (
            "unsafe-downgrade"
            if options.unsafe_downgrade
            else "safe-downgrade"
            if options.downgrade
            else "upgrade"
        )
        await admin.update_features(options.levels, kind=kind, validate_only=options.dry_run)  # type: ignore[arg-type]
    found = await admin.describe_features()
    rows = [
        (name, found.finalized.get(name), *found.supported.get(name, (None, None)))
        for name in sorted({*found.finalized, *found.supported})
    ]
    if options.json:
        keys = ("name", "finalized", "min", "max")
        print_json({"features": [dict(zip(keys, row, strict=True)) for row in rows], "epoch": found.epoch})
    else:
        show(table(("FEATURE", "FINALIZED", "MIN", "MAX"), rows))
    return DONE
