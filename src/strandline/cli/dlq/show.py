"""`strandline dlq show`: dead letters with the reason of each."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from strandline.cli.arguments import whole_number
from strandline.cli.connection import add_connection, run, settings_of
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json
from strandline.cli.output.text import moment, show, table
from strandline.cli.records.ranges import ReadRange
from strandline.cli.records.rows import to_row
from strandline.cli.topics.names import existing_topic

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.consumer.record_decoder import ConsumerRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the last dead letters of a topic: where each came from, which group failed, and why."
    )
    parser.add_argument("topic", metavar="TOPIC", help="the topic whose dead letters these are, without .dlq")
    parser.add_argument(
        "--max",
        "-n",
        type=whole_number,
        default=20,
        metavar="COUNT",
        help="the number of dead letters (default: 20)",
    )
    parser.add_argument("--value", action="store_true", help="show the values too")
    add_connection(parser)
    add_json(
        parser,
        {
            "original_topic": "text",
            "original_partition": "number",
            "original_offset": "number",
            "attempts": "number",
            "group": "text",
            "error": "text",
            "record": {"<field>": "text?"},
        },
        lines=True,
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _show, "topics")


async def _show(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client import Consumer
    from strandline.client.deadletter.letters import dead_letter_topic

    name = dead_letter_topic(options.topic)
    await existing_topic(admin, name)
    settings: dict[str, Any] = {**settings_of(options, "consumer"), "enable.auto.commit": "false"}
    reading = ReadRange(tail=options.max, stops_at_end=True)
    letters: list[ConsumerRecord] = []
    async with Consumer(settings) as consumer:
        ends = await reading.assign(consumer, name, None)
        while True:
            found = await consumer.poll(0.5, 1000)
            letters += found
            if await reading.is_over(consumer, ends, was_empty=not found):
                break
    letters = sorted(letters, key=lambda each: each.timestamp)[-options.max :]
    documents = [_document(each) for each in letters]
    if options.json:
        for document in documents:
            print(json.dumps(document))
        return DONE
    rows = [
        (
            f"{each['original_topic']}-{each['original_partition']}@{each['original_offset']}",
            each["group"],
            each["attempts"],
            moment(record.timestamp),
            str(each["error"])[:200],
            *([(record.value or b"")[:200].decode(errors="replace")] if options.value else []),
        )
        for each, record in zip(documents, letters, strict=True)
    ]
    head = ("FROM", "GROUP", "ATTEMPTS", "WHEN", "ERROR", *(["VALUE"] if options.value else []))
    show(table(head, rows) or ["no dead letters"])
    return DONE


def _document(record: ConsumerRecord) -> dict[str, Any]:
    from strandline.client.deadletter.letters import ERROR, GROUP, origin_of

    origin = origin_of(record)
    headers = dict(record.headers)
    return {
        "original_topic": origin.topic,
        "original_partition": origin.partition,
        "original_offset": origin.offset,
        "attempts": origin.attempt,
        "group": (headers.get(GROUP) or b"").decode(errors="replace"),
        "error": (headers.get(ERROR) or b"").decode(errors="replace"),
        "record": to_row(record),
    }
