"""`strandline elect-leaders`: gives partitions their preferred leader, or any."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.groups.scope import add_scope, partitions_in_scope
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of, show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Elects the preferred leader of partitions, the first of their replicas. With --unclean a partition without "
        "a leader gets a replica that is out of sync as its leader: acknowledged records may be lost."
    )
    add_scope(parser)
    parser.add_argument(
        "--unclean", action="store_true", help="allow replicas that are out of sync, and lose records"
    )
    add_yes(parser)
    add_connection(parser)
    add_json(
        parser,
        {
            "election": "text",
            "partitions": [{"topic": "text", "partition": "number", "elected": "flag", "error": "text?"}],
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _elect, "cluster", "topics")


async def _elect(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.base.errors import ErrorCode
    from strandline.base.ids import TopicPartition

    topics = await admin.describe_all_topics()
    wanted = [
        TopicPartition(topic.name, each.partition)
        for topic in topics
        for each in topic.partitions
        if (each.leader_id < 0 if options.unclean else each.leader_id != each.replicas[0])
    ]
    partitions = await partitions_in_scope(admin, options, wanted)
    if options.unclean and partitions:
        question = f"Elect unclean leaders for {count_of(len(partitions), 'partition')}, and lose records?"
        if not confirmed(options, question):
            return FAILED
    election = "unclean" if options.unclean else "preferred"
    found = await admin.elect_leaders(partitions, election=election) if partitions else {}  # type: ignore[arg-type]
    needless = ErrorCode.ELECTION_NOT_NEEDED
    rows = []
    for where, error in sorted(found.items()):
        is_needless = error is not None and error.code == needless
        rows.append(
            (
                where.topic,
                where.partition,
                error is None,
                None if error is None or is_needless else str(error),
            )
        )
    if options.json:
        keys = ("topic", "partition", "elected", "error")
        print_json({"election": election, "partitions": [dict(zip(keys, row, strict=True)) for row in rows]})
    elif rows:
        show(table(("TOPIC", "PARTITION", "ELECTED", "ERROR"), rows))
    else:
        print(
            "every partition has a leader" if options.unclean else "every partition has its preferred leader"
        )
    return FAILED if any(row[3] is not None for row in rows) else DONE
