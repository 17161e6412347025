"""`strandline topics delete`: deletes topics with all their records, after asking."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED, USAGE
from strandline.cli.failures import CommandError
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of
from strandline.cli.topics.names import matching_topics

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Deletes topics with all their records; that cannot be undone. Internal topics have the offsets of groups "
        "and the state of transactions: they are refused without --internal."
    )
    parser.add_argument(
        "topic", nargs="+", metavar="TOPIC", help="the topics; * and ? stand for any characters"
    )
    parser.add_argument("--internal", action="store_true", help="allow the deletion of internal topics")
    parser.add_argument(
        "--dry-run", action="store_true", help="delete nothing, and only say what would be deleted"
    )
    add_yes(parser)
    add_connection(parser)
    add_json(parser, {"topics": ["text"], "dry_run": "flag"})


def call(options: argparse.Namespace) -> int:
    return run(options, _delete, "topics")


async def _delete(admin: Admin, options: argparse.Namespace) -> int:
    names = await matching_topics(admin, options.topic, include_internal=options.internal)
    topics = await admin.describe_topics(names)
    internal = [name for name in names if topics[name].is_internal]
    if internal and not options.internal:
        raise CommandError(
            f"{', '.join(internal)}: an internal topic; without it groups lose their offsets or transactions their "
            "state. Add --internal if you want that",
            USAGE,
        )
    if not options.dry_run:
        partitions = sum(len(topics[name].partitions) for name in names)
        shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        what = f"{count_of(len(names), 'topic')} ({count_of(partitions, 'partition')}): {shown}"
        if not confirmed(options, f"Delete {what}?"):
            return FAILED
        await admin.delete_topics(names)
    if options.json:
        print_json({"topics": names, "dry_run": options.dry_run})
    else:
        for name in names:
            print(f"topic {name} {'would be deleted' if options.dry_run else 'deleted'}")
    return DONE
