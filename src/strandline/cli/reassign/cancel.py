"""`strandline reassign cancel`: cancels reassignments in progress."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of
from strandline.cli.reassign import files
from strandline.cli.reassign.throttles import remove_throttles

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Cancels moves in progress, all of them or those of a file. The replicas stay where they were before."
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="cancel only the moves of the partitions in this file; - is stdin",
    )
    add_yes(parser)
    add_connection(parser)
    add_json(parser, {"partitions": [{"topic": "text", "partition": "number"}]})


def call(options: argparse.Namespace) -> int:
    options.wanted = None if options.file is None else list(files.read(options.file))
    return run(options, _cancel, "cluster", "topics", "configs")


async def _cancel(admin: Admin, options: argparse.Namespace) -> int:
    running = sorted(await admin.list_reassignments(options.wanted))
    if running:
        if not confirmed(options, f"Cancel the moves of {count_of(len(running), 'partition')}?"):
            return FAILED
        await admin.reassign_partitions(dict.fromkeys(running))
        await remove_throttles(admin, running)
    if options.json:
        print_json({"partitions": [each._asdict() for each in running]})
    else:
        print(f"{count_of(len(running), 'move')} cancelled" if running else "nothing is being moved")
    return DONE
