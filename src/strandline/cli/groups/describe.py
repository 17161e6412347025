"""`strandline groups describe`: shows committed offsets, the ends of the partitions, and the lag between them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.groups.names import matching_groups
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import coloured, count_of, show, table

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin
    from strandline.client.admin.groups import GroupDescription

SHAPE: Any = {
    "groups": [
        {
            "group": "text",
            "state": "text",
            "type": "text",
            "assignor": "text",
            "members": "number",
            "lag": "number",
            "partitions": [
                {
                    "topic": "text",
                    "partition": "number",
                    "committed": "number?",
                    "end": "number?",
                    "lag": "number?",
                    "metadata": "text",
                    "member": "text?",
                    "client_id": "text?",
                    "host": "text?",
                }
            ],
        }
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartition:
    """A partition for which a group has a committed offset or an assigned member."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    metadata: str
    member: str | None
    client_id: str | None
    host: str | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end is None:
            return None
        return max(self.end - self.committed, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the committed offsets of groups, the ends of the partitions, the lag, and the members."
    )
    parser.add_argument(
        "group",
        nargs="*",
        metavar="GROUP",
        help="the groups; * and ? stand for any characters (default: all groups)",
    )
    add_connection(parser)
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    return run(options, _describe, "groups", "topics")


async def _describe(admin: Admin, options: argparse.Namespace) -> int:
    found = await look_at_groups(admin, options.group)
    if options.json:
        print_json({"groups": [_document(group, rows) for group, rows in found]})
    elif found:
        show([line for group, rows in found for line in [*_lines(group, rows), ""]][:-1])
    else:
        print("no groups")
    return DONE


async def look_at_groups(
    admin: Admin, patterns: list[str]
) -> list[tuple[GroupDescription, list[GroupPartition]]]:
    """Returns the groups, each with its partitions."""
    names = [each.group_id for each in await matching_groups(admin, patterns)]
    described = await admin.describe_groups(names)
    return [(group, await _partitions(admin, group)) for group in described.values()]


async def _partitions(admin: Admin, group: GroupDescription) -> list[GroupPartition]:
    committed = await admin.list_group_offsets(group.group_id)
    members = {each: member for member in group.members for each in member.assignment}
    partitions = sorted({*committed, *members})
    ends = await ends_of(admin, partitions)
    found = []
    for each in partitions:
        member, offset = members.get(each), committed.get(each)
        found.append(
            GroupPartition(
                topic=each.topic,
                partition=each.partition,
                committed=None if offset is None else offset.offset,
                end=ends.get(each),
                metadata="" if offset is None else offset.metadata,
                member=None if member is None else member.instance_id or member.member_id,
                client_id=None if member is None else member.client_id,
                host=None if member is None else member.host,
            )
        )
    return found


async def ends_of(admin: Admin, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Returns the end of each partition that exists and has a leader. A group may still have offsets of a deleted
    topic."""
    from strandline.client.admin.topics import LATEST

    known = {topic.name: topic for topic in await admin.describe_all_topics()} if partitions else {}
    there = [
        each for each in partitions if each.topic in known and each.partition in known[each.topic].available
    ]
    listed = await admin.list_offsets(dict.fromkeys(there, LATEST)) if there else {}
    return {each: at.offset for each, at in listed.items()}


def _document(group: GroupDescription, rows: list[GroupPartition]) -> dict[str, object]:
    return {
        "group": group.group_id,
        "state": group.state,
        "type": group.type,
        "assignor": group.assignor,
        "members": len(group.members),
        "lag": sum(row.lag or 0 for row in rows),
        "partitions": [
            {
                "topic": row.topic,
                "partition": row.partition,
                "committed": row.committed,
                "end": row.end,
                "lag": row.lag,
                "metadata": row.metadata,
                "member": row.member,
                "client_id": row.client_id,
                "host": row.host,
            }
            for row in rows
        ],
    }


def _lines(group: GroupDescription, rows: list[GroupPartition]) -> list[str]:
    lag = sum(row.lag or 0 for row in rows)
    members = count_of(len(group.members), "member")
    lines = [f"group {coloured(group.group_id, 'bold')}  {group.state}, {group.type}, {members}, lag {lag}"]
    cells = [
        (row.topic, row.partition, row.committed, row.end, row.lag, row.client_id, row.host) for row in rows
    ]
    head = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST")
    return lines + [f"  {line}" for line in table(head, cells)]
