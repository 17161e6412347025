"""`strandline groups clone`: copies the committed offsets of a group to another group."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import CommandError, not_found
from strandline.cli.groups.names import matching_groups
from strandline.cli.groups.scope import add_scope, partitions_in_scope
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Commits the offsets of a group for another group, which then begins at the same offsets. The other group "
        "must have no members."
    )
    parser.add_argument("group", metavar="GROUP", help="the group whose offsets are copied")
    parser.add_argument("new", metavar="NEW", help="the group that gets them")
    add_scope(parser)
    add_yes(parser)
    add_connection(parser)
    add_json(
        parser,
        {"group": "text", "partitions": [{"topic": "text", "partition": "number", "offset": "number"}]},
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _clone, "groups", "topics")


async def _clone(admin: Admin, options: argparse.Namespace) -> int:
    listed = {each.group_id for each in await admin.list_groups()}
    await matching_groups(admin, [options.group])
    committed = await admin.list_group_offsets(options.group)
    wanted = await partitions_in_scope(admin, options, list(committed))
    offsets = {each: committed[each] for each in wanted if each in committed}
    if not offsets:
        raise not_found(f"group {options.group} has no committed offsets there")
    if options.new in listed:
        (group,) = (await admin.describe_groups([options.new])).values()
        if group.members:
            raise CommandError(
                f"group {options.new} has {count_of(len(group.members), 'member')}: stop them first"
            )
        if not confirmed(options, f"Group {options.new} exists: replace {count_of(len(offsets), 'offset')}?"):
            return FAILED
    await admin.alter_group_offsets(options.new, offsets)
    if options.json:
        rows = [{**each._asdict(), "offset": at.offset} for each, at in sorted(offsets.items())]
        print_json({"group": options.new, "partitions": rows})
    else:
        print(f"group {options.new} has {count_of(len(offsets), 'offset')} of group {options.group}")
    return DONE
