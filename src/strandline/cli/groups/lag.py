"""`strandline groups lag`: one line for each group, or for each group and topic."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import offset
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.groups.describe import look_at_groups
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows how many records groups are behind, by topic. With --max it ends with 1 if one exceeds it."
    )
    parser.add_argument(
        "group", nargs="*", metavar="GROUP", help="names; * and ? stand for any (default: all)"
    )
    parser.add_argument("--max", type=offset, metavar="COUNT", help="end with 1 if a group is further behind")
    add_connection(parser)
    add_json(
        parser, {"groups": [{"group": "text", "topic": "text", "partitions": "number", "lag": "number"}]}
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _lag, "groups", "topics")


async def _lag(admin: Admin, options: argparse.Namespace) -> int:
    totals: dict[tuple[str, str], list[int]] = {}
    for group, partitions in await look_at_groups(admin, options.group):
        for each in partitions:
            total = totals.setdefault((group.group_id, each.topic), [0, 0])
            total[0] += 1
            total[1] += each.lag or 0
    rows = [(group, topic, count, lag) for (group, topic), (count, lag) in sorted(totals.items())]
    if options.json:
        keys = ("group", "topic", "partitions", "lag")
        print_json({"groups": [dict(zip(keys, row, strict=True)) for row in rows]})
    elif rows:
        show(table(("GROUP", "TOPIC", "PARTITIONS", "LAG"), rows))
    else:
        print("no committed offsets")
    is_late = options.max is not None and any(lag > options.max for *_, lag in rows)
    return FAILED if is_late else DONE
