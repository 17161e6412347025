"""`strandline dlq list`: lists the dead-letter topics, with the number of dead letters in each."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin

_SUFFIX = ".dlq"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists the topics that have dead letters, with their number and the number that `dlq redrive` has not put "
        "back yet."
    )
    add_connection(parser)
    add_json(parser, {"topics": [{"topic": "text", "letters": "number", "waiting": "number"}]})


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "topics", "groups")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.base.ids import TopicPartition
    from strandline.client.admin.topics import EARLIEST, LATEST

    groups = {each.group_id for each in await admin.list_groups()}
    rows = []
    for topic in await admin.describe_all_topics():
        if not topic.name.endswith(_SUFFIX):
            continue
        partitions = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
        first = await admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
        last = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
        group = f"{topic.name}.redrive"
        done = await admin.list_group_offsets(group) if group in groups else {}
        letters = sum(last[each].offset - first[each].offset for each in partitions)
        waiting = sum(
            last[each].offset - max(first[each].offset, done[each].offset if each in done else 0)
            for each in partitions
        )
        rows.append((topic.name.removesuffix(_SUFFIX), letters, waiting))
    if options.json:
        keys = ("topic", "letters", "waiting")
        print_json({"topics": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        show(table(("TOPIC", "LETTERS", "WAITING"), rows) or ["no dead letters"])
    return DONE
