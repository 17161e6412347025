"""`strandline reassign verify`: checks whether a reassignment is done, and then removes its throttles."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table
from strandline.cli.reassign import files
from strandline.cli.reassign.throttles import remove_throttles

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compares a file with the cluster. If every partition has the replicas of the file, the throttles are "
        "removed, and the exit code is 0; otherwise it is 1."
    )
    parser.add_argument("file", metavar="FILE", help="the JSON file of `reassign start`; - is stdin")
    parser.add_argument("--preserve-throttles", action="store_true", help="do not remove throttles")
    add_connection(parser)
    add_json(
        parser,
        {
            "done": "flag",
            "partitions": [{"topic": "text", "partition": "number", "state": "text", "replicas": ["number"]}],
        },
    )


def call(options: argparse.Namespace) -> int:
    options.wanted = files.read(options.file)
    return run(options, _verify, "cluster", "topics", "configs")


async def _verify(admin: Admin, options: argparse.Namespace) -> int:
    known = {topic.name: topic for topic in await admin.describe_all_topics()}
    running = await admin.list_reassignments(list(options.wanted)) if options.wanted else {}
    rows: list[tuple[str, int, str, list[int]]] = []
    for each, nodes in sorted(options.wanted.items()):
        topic = known.get(each.topic)
        if topic is None or each.partition >= len(topic.partitions):
            rows.append((each.topic, each.partition, "no such partition", []))
            continue
        replicas = topic.partitions[each.partition].replicas
        state = "moving" if each in running else "done" if set(replicas) == set(nodes) else "elsewhere"
        rows.append((each.topic, each.partition, state, list(replicas)))
    is_done = all(row[2] == "done" for row in rows)
    if is_done and not options.preserve_throttles and rows:
        await remove_throttles(admin, options.wanted)
    if options.json:
        keys = ("topic", "partition", "state", "replicas")
        print_json({"done": is_done, "partitions": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        show(table(("TOPIC", "PARTITION", "STATE", "REPLICAS"), rows) or ["the file names no partitions"])
    return DONE if is_done else FAILED
