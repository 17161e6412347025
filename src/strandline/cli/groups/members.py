"""`strandline groups members`: shows the members of groups and their partitions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.groups.names import matching_groups
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Shows the members of groups and the partitions that each has."
    parser.add_argument(
        "group", nargs="+", metavar="GROUP", help="the groups; * and ? stand for any characters"
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "groups": [
                {
                    "group": "text",
                    "state": "text",
                    "type": "text",
                    "assignor": "text",
                    "members": [
                        {
                            "member_id": "text",
                            "instance_id": "text?",
                            "client_id": "text",
                            "host": "text",
                            "assignment": [{"topic": "text", "partition": "number"}],
                        }
                    ],
                }
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _members, "groups")


async def _members(admin: Admin, options: argparse.Namespace) -> int:
    names = [each.group_id for each in await matching_groups(admin, options.group)]
    described = await admin.describe_groups(names)
    if options.json:
        print_json(
            {
                "groups": [
                    {
                        "group": group.group_id,
                        "state": group.state,
                        "type": group.type,
                        "assignor": group.assignor,
                        "members": [
                            {
                                "member_id": member.member_id,
                                "instance_id": member.instance_id,
                                "client_id": member.client_id,
                                "host": member.host,
                                "assignment": [each._asdict() for each in member.assignment],
                            }
                            for member in group.members
                        ],
                    }
                    for group in described.values()
                ]
            }
        )
        return DONE
    rows = [
        (
            group.group_id,
            member.client_id,
            member.host,
            len(member.assignment),
            assigned_text(member.assignment),
            member.instance_id or member.member_id,
        )
        for group in described.values()
        for member in group.members
    ]
    if rows:
        show(table(("GROUP", "CLIENT", "HOST", "COUNT", "PARTITIONS", "MEMBER"), rows))
    for group in described.values():
        if not group.members:
            print(f"group {group.group_id} has no members (state {group.state})")
    return DONE


def assigned_text(assignment: tuple[TopicPartition, ...]) -> str:
    """Returns partitions by topic, such as orders:0,1."""
    by_topic: dict[str, list[str]] = {}
    for each in sorted(assignment):
        by_topic.setdefault(each.topic, []).append(str(each.partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items()) or "-"
