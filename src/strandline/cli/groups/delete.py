"""`strandline groups delete`: deletes groups without members, or their offsets of topics, after asking."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import CommandError, not_found
from strandline.cli.groups.names import matching_groups
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Deletes groups with their committed offsets, or with --topic only their offsets of a topic. A group with "
        "members is refused: stop the members first."
    )
    parser.add_argument(
        "group", nargs="+", metavar="GROUP", help="the groups; * and ? stand for any characters"
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="TOPIC", help="delete only the offsets of this topic"
    )
    add_yes(parser)
    add_connection(parser)
    add_json(parser, {"groups": ["text"], "topics": ["text"]})


def call(options: argparse.Namespace) -> int:
    return run(options, _delete, "groups")


async def _delete(admin: Admin, options: argparse.Namespace) -> int:
    groups = await matching_groups(admin, options.group)
    names = [each.group_id for each in groups]
    if not options.topic:
        living = [each for each in (await admin.describe_groups(names)).values() if each.members]
        if living:
            raise CommandError(
                f"group {living[0].group_id} has {count_of(len(living[0].members), 'member')}: stop them first "
                f"(`strandline groups members {living[0].group_id}` shows them)"
            )
    what = "their offsets of " + ", ".join(options.topic) if options.topic else "all their offsets"
    if not confirmed(options, f"Delete {count_of(len(names), 'group')} ({', '.join(names[:10])}), {what}?"):
        return FAILED
    if options.topic:
        for name in names:
            known = [each for each in await admin.list_group_offsets(name) if each.topic in options.topic]
            if not known:
                raise not_found(f"group {name} has no offsets of {', '.join(options.topic)}")
            await admin.delete_group_offsets(name, known)
    else:
        await admin.delete_groups(names)
    if options.json:
        print_json({"groups": names, "topics": options.topic})
    else:
        for name in names:
            print(f"group {name}: offsets deleted" if options.topic else f"group {name} deleted")
    return DONE
