"""`strandline topics list` names the topics, with partitions and replicas."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists topics with their partitions and replicas."
    parser.add_argument(
        "pattern", nargs="*", metavar="TOPIC", help="list only these topics; * and ? stand for any characters"
    )
    parser.add_argument("--internal", action="store_true", help="list internal topics too")
    parser.add_argument("--names", action="store_true", help="print only the names, one on each line")
    add_connection(parser)
    add_json(
        parser,
        {
            "topics": [
                {"name": "text", "partitions": "number", "replication_factor": "number", "internal": "flag"}
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "topics")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    topics = [
        topic
        for topic in await admin.describe_all_topics()
        if (options.internal or not topic.is_internal)
        and (not options.pattern or any(fnmatchcase(topic.name, each) for each in options.pattern))
    ]
    found = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
            "internal": topic.is_internal,
        }
        for topic in topics
    ]
    if options.json:
        print_json({"topics": found})
    elif options.names:
        show([topic.name for topic in topics])
    elif found:
        show(table(("TOPIC", "PARTITIONS", "REPLICAS"), [tuple(each.values())[:3] for each in found]))
    else:
        print(
            "no topics"
            + (" match" if options.pattern else "; create one with `strandline topics create NAME`")
        )
    return DONE
