"""`strandline perf consume`: measures how many records a second can be read from a cluster."""

from __future__ import annotations

import argparse
from typing import Any, Final

from strandline.cli.arguments import whole_number
from strandline.cli.connection import add_connection, run_async, settings_of, with_admin
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.progress import Progress
from strandline.cli.perf.figures import SHAPE, Meter, line_of
from strandline.cli.topics.names import existing_topic

_POLL_RECORDS: Final = 10_000
_SETTINGS: Final = {
    "enable.auto.commit": "false",
    "allow.auto.create.topics": "false",
    "max.partition.fetch.bytes": "2097152",
    "fetch.max.bytes": "8388608",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads a topic from its beginning to its present end, or --records of it, with the client of this package. "
        "No offsets are committed."
    )
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    parser.add_argument(
        "--records", "-n", type=whole_number, help="end after this number of records (default: all)"
    )
    add_connection(parser)
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    return run_async(lambda: _consume(options), options)


async def _consume(options: argparse.Namespace) -> int:
    from strandline.client import Consumer

    async def check(admin: Any, _: argparse.Namespace) -> int:
        await existing_topic(admin, options.topic)
        return DONE

    await with_admin(options, check, ("topics",))
    async with Consumer({**_SETTINGS, **settings_of(options, "consumer")}) as consumer:
        partitions = await consumer.partitions_for(options.topic)
        consumer.assign(partitions)
        first, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        for partition, offset in first.items():
            consumer.seek(partition, offset)
        total = sum(ends[each] - first[each] for each in partitions)
        wanted = total if options.records is None else min(options.records, total)
        with Progress() as progress:
            meter = Meter(wanted, progress)
            left = {each for each in partitions if ends[each] > first[each]}
            while left and meter.records < wanted:
                records = await consumer.poll(1.0, min(_POLL_RECORDS, wanted - meter.records))
                meter.add(
                    len(records), sum(len(each.value or b"") + len(each.key or b"") for each in records)
                )
                # Aborted records and markers have offsets but give no records, so progress is measured by positions.
                left = {each for each in left if await consumer.position(each) < ends[each]}
            document = meter.document()
    if options.json:
        print_json(document)
    else:
        print(line_of(document))
    return DONE
