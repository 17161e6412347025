"""`strandline consume`: prints the records of a topic as lines, in a chosen format, or as JSON rows."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.arguments import partition_list, timestamp_ms, whole_number
from strandline.cli.connection import add_connection, run_async, settings_of, with_admin
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import CommandError, not_found, usage
from strandline.cli.output.document import add_json
from strandline.cli.output.text import note
from strandline.cli.presets import add_preset, client_part
from strandline.cli.records.matching import add_grep, batch_filter_of, matcher_of
from strandline.cli.records.ranges import ReadRange, range_of
from strandline.cli.records.rendering import renderer_of
from strandline.cli.records.rows import SHAPE
from strandline.cli.registry import HOW_TO_INSTALL, is_installed
from strandline.cli.schemas.connection import Refused, add_registry_option
from strandline.cli.topics.names import existing_topic

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.cli.records.schema_reader import SchemaReader
    from strandline.client import Consumer
    from strandline.client.consumer.record_decoder import ConsumerRecord

# The records of one poll: enough that the work per poll does not matter, and few enough that output appears steadily.
_POLL_RECORDS: Final = 10_000
_POLL_SECONDS: Final = 0.5
_SETTINGS: Final = {
    "enable.auto.commit": "false",
    "allow.auto.create.topics": "false",
    # Large enough for few requests, small enough that memory is reused instead of allocated again.
    "max.partition.fetch.bytes": "2097152",
    "fetch.max.bytes": "8388608",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prints the records of a topic. Without --from, --tail, --exit or a range it waits for new ones, as Kafka's "
        "console consumer does. With --json, `strandline produce --from-json` takes the rows back."
    )
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="WHERE",
        help="where to begin: beginning, end, an offset, or a time (2026-01-31T12:00:00Z, 15m for 15 minutes ago)",
    )
    parser.add_argument(
        "--from-beginning", dest="start", action="store_const", const="beginning", help="all records"
    )
    parser.add_argument(
        "--tail",
        type=whole_number,
        metavar="COUNT",
        help="begin this number of offsets before the end of each partition",
    )
    parser.add_argument("--to-offset", type=whole_number, metavar="OFFSET", help="stop before this offset")
    parser.add_argument(
        "--until", type=timestamp_ms, metavar="TIME", help="stop at the first record at or after this time"
    )
    parser.add_argument(
        "--exit",
        "-e",
        action="store_true",
        help="stop at the present end of the topic; without --from it begins at the beginning",
    )
    parser.add_argument(
        "--partitions",
        "-p",
        type=partition_list,
        metavar="LIST",
        help="read only these partitions, as 0,2 or 0-3",
    )
    parser.add_argument(
        "--max", "-n", type=whole_number, metavar="COUNT", help="stop after this number of printed records"
    )
    parser.add_argument(
        "--group",
        "-g",
        metavar="GROUP",
        help="read as a member of this group; offsets are committed after the records were printed",
    )
    parser.add_argument(
        "--committed", action="store_true", help="leave out records of open or aborted transactions"
    )
    add_preset(parser, "a group of consumer settings; commits stay as this command makes them")
    add_registry_option(parser, is_optional=True)
    add_grep(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        "-f",
        metavar="TEXT",
        help="%%t topic %%p partition %%o offset %%T time %%k key %%v value %%h headers",
    )
    form.add_argument("--keys", action="store_true", help="print the key, a tab and the value")
    form.add_argument(
        "--raw", action="store_true", help="print the bytes of values, without anything between them"
    )
    add_connection(parser)
    add_json(parser, SHAPE, lines=True)


def call(options: argparse.Namespace) -> int:
    if options.group is not None and (
        options.partitions or options.tail or options.to_offset or options.until
    ):
        raise usage(
            "--group begins at the committed offsets of the group: leave out --partitions, --tail, --to-offset and "
            "--until"
        )
    if options.group is not None and options.start not in (None, "beginning", "end"):
        raise usage(
            "with --group, --from must be beginning or end, and is for partitions without a committed offset"
        )
    if options.json and (options.format or options.keys or options.raw):
        raise usage("--json prints rows: leave out --format, --keys and --raw")
    options.range = range_of(options)
    options.matches = matcher_of(options)
    options.render = renderer_of(options)
    try:
        options.reader = _schema_reader(options)
        return run_async(lambda: _consume(options), options)
    except Refused as error:
        raise CommandError(str(error), error.code) from None


def _schema_reader(options: argparse.Namespace) -> SchemaReader | None:
    if options.registry is None:
        return None
    if not is_installed():
        raise usage(f"--registry needs more packages: {HOW_TO_INSTALL}")
    from strandline.cli.records.schema_reader import SchemaReader

    return SchemaReader(options)


async def _consume(options: argparse.Namespace) -> int:
    from strandline.client import Consumer

    await with_admin(options, _check_topic, ("topics",))
    preset = client_part(options, "consumer")
    settings: dict[str, Any] = {**preset, **_SETTINGS, **settings_of(options, "consumer")}
    settings.setdefault("default.api.timeout.ms", str(max(round(options.timeout * 1000), 1)))
    if options.group is not None:
        settings["group.id"] = options.group
        otherwise = preset.get("auto.offset.reset", "latest") if options.start is None else "latest"
        settings["auto.offset.reset"] = "earliest" if options.range.is_from_beginning else otherwise
    if options.committed:
        settings["isolation.level"] = "read_committed"
    async with Consumer(settings) as consumer:
        consumer.set_batch_filter(batch_filter_of(options))
        if options.group is not None:
            consumer.subscribe([options.topic])
            return await _print(consumer, options, None)
        ends = await options.range.assign(consumer, options.topic, options.partitions)
        return await _print(consumer, options, ends)


async def _check_topic(admin: Any, options: argparse.Namespace) -> int:
    topic = await existing_topic(admin, options.topic)
    if options.partitions and max(options.partitions) >= len(topic.partitions):
        raise not_found(f"{options.topic} has the partitions 0 to {len(topic.partitions) - 1}")
    return DONE


async def _print(consumer: Consumer, options: argparse.Namespace, ends: dict[Any, int] | None) -> int:
    """Prints records until the end. `ends` are offsets by partition; None for a group, or if there is no end."""
    reading: ReadRange = options.range
    write, left = sys.stdout.buffer.write, options.max
    if sys.stderr.isatty() and not reading.has_end and left is None:
        note("Waiting for records; Ctrl-C ends.")
    while True:
        records = await consumer.poll(_POLL_SECONDS, _POLL_RECORDS)
        if ends:
            records = [each for each in records if each.offset < ends.get((each.topic, each.partition), 0)]
        shown = options.matches(records if options.reader is None else options.reader.read(records))
        if left is not None:
            shown = shown[:left]
            left -= len(shown)
        if shown:
            write(options.render(shown))
            sys.stdout.buffer.flush()
        if records and options.group is not None:
            await (consumer.commit(_after(shown)) if left == 0 else consumer.commit())
        if left == 0:
            return DONE
        if reading.has_end and await reading.is_over(consumer, ends, was_empty=not records):
            return DONE


def _after(shown: list[ConsumerRecord]) -> dict[TopicPartition, int]:
    """Returns the offsets after the printed records. Records of the poll that were not printed are read again."""
    from strandline.base.ids import TopicPartition

    return {TopicPartition(each.topic, each.partition): each.offset + 1 for each in shown}
