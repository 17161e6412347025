"""`strandline topics delete-records`: deletes records at the beginning of partitions, after asking."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from strandline.cli.arguments import offset, partition_list, timestamp_ms
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import not_found, reason_of, usage
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of, show, table
from strandline.cli.topics.names import existing_topic

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Deletes the records before an offset or a time in partitions of a topic. That cannot be undone."
    )
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="the topic")
    parser.add_argument(
        "--partitions",
        type=partition_list,
        metavar="LIST",
        help="delete only in these partitions, as 0,2 or 0-3",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--before-offset", type=offset, metavar="OFFSET", help="delete the records before this offset"
    )
    where.add_argument(
        "--before",
        type=timestamp_ms,
        metavar="TIME",
        help="delete the records before this time: 2026-01-31T12:00:00Z, or 7d for 7 days ago",
    )
    where.add_argument("--all", action="store_true", help="delete all present records")
    where.add_argument(
        "--offset-json-file",
        metavar="FILE",
        help="a file with partitions and offsets in the form of kafka-delete-records.sh",
    )
    add_yes(parser)
    add_connection(parser)
    add_json(
        parser,
        {
            "partitions": [
                {"topic": "text", "partition": "number", "log_start_offset": "number", "deleted": "number"}
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    if (options.topic is None) == (options.offset_json_file is None):
        raise usage("give a TOPIC, or --offset-json-file with topics in it")
    return run(options, _delete_records, "topics")


async def _delete_records(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.topics import EARLIEST, LATEST

    if options.offset_json_file is not None:
        requested = _from_file(options.offset_json_file)
        for topic in {each.topic for each in requested}:
            await existing_topic(admin, topic)
    else:
        requested = await _from_options(admin, options)
    starts = await admin.list_offsets(dict.fromkeys(requested, EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(requested, LATEST))
    before = {each: ends[each].offset if at < 0 else at for each, at in requested.items()}
    late = [each for each, at in before.items() if at > ends[each].offset]
    if late:
        raise usage(f"{late[0]} ends at {ends[late[0]].offset}: no offset {before[late[0]]} is there")
    count = sum(max(at - starts[each].offset, 0) for each, at in before.items())
    if not confirmed(
        options, f"Delete {count_of(count, 'offset')} of records in {count_of(len(before), 'partition')}?"
    ):
        return FAILED
    low = await admin.delete_records(before)
    rows = [
        (each.topic, each.partition, low[each], max(low[each] - starts[each].offset, 0))
        for each in sorted(low)
    ]
    if options.json:
        keys = ("topic", "partition", "log_start_offset", "deleted")
        print_json({"partitions": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        show(table(("TOPIC", "PARTITION", "LOG START OFFSET", "DELETED"), rows))
    return DONE


async def _from_options(admin: Admin, options: argparse.Namespace) -> dict[TopicPartition, int]:
    """Returns the offset to keep for each partition; -1 for the end."""
    from strandline.base.ids import TopicPartition

    topic = await existing_topic(admin, options.topic)
    numbers = options.partitions or range(len(topic.partitions))
    if max(numbers) >= len(topic.partitions):
        raise not_found(
            f"{options.topic} has {count_of(len(topic.partitions), 'partition')}, no {max(numbers)}"
        )
    partitions = [TopicPartition(options.topic, number) for number in numbers]
    if options.before_offset is not None:
        return dict.fromkeys(partitions, options.before_offset)
    if options.all:
        return dict.fromkeys(partitions, -1)
    found = await admin.list_offsets(dict.fromkeys(partitions, options.before))
    return {each: at.offset for each, at in found.items()}


def _from_file(path: str) -> dict[TopicPartition, int]:
    from strandline.base.ids import TopicPartition

    try:
        with open(path, encoding="utf-8") as file:
            found: Any = json.load(file)
        return {
            TopicPartition(str(each["topic"]), int(each["partition"])): int(each["offset"])
            for each in found["partitions"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise usage(
            f"{path} does not name records to delete ({reason_of(error)}): it must be like "
            '{"partitions": [{"topic": "t", "partition": 0, "offset": 10}], "version": 1}'
        ) from error
