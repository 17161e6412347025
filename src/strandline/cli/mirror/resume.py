"""`strandline mirror resume`: has a paused flow go on."""

from __future__ import annotations

import argparse
from typing import Any

from strandline.cli.mirror import pause
from strandline.cli.mirror.files import add_action


def add_parser(actions: Any) -> None:
    parser = add_action(
        actions,
        "resume",
        "have a paused flow go on",
        "Has a flow that was paused go on where it stopped. After a failover only `mirror failback` does that.",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def call(options: argparse.Namespace) -> int:
    return pause.change(options, paused=False, reason="")
