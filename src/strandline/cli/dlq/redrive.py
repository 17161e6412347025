"""`strandline dlq redrive`: puts dead letters back into the topics that they came from."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run, settings_of
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.progress import Progress
from strandline.cli.output.text import count_of
from strandline.cli.topics.names import existing_topic

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(redrive: argparse.ArgumentParser) -> None:
    redrive.description = (
        "Puts the dead letters of TOPIC.dlq back into the topics that they came from. Each is put back once: the "
        "next redrive continues where this one ends."
    )
    redrive.add_argument(
        "topic", metavar="TOPIC", help="the topic whose dead letters these are, without .dlq"
    )
    redrive.add_argument("--to", metavar="TOPIC", help="put them into this topic instead")
    redrive.add_argument("--max", type=int, metavar="COUNT", help="stop after this number of letters")
    redrive.add_argument(
        "--dry-run", action="store_true", help="change nothing, and only say what would be done"
    )
    redrive.add_argument(
        "--from-beginning", action="store_true", help="put back those again that were put back before"
    )
    redrive.add_argument(
        "--transactional-id",
        metavar="ID",
        help="write the records and the progress in transactions: exactly once",
    )
    add_connection(redrive)
    add_json(
        redrive,
        {
            "topic": "text",
            "dry_run": "flag",
            "count": "number",
            "letters": [
                {
                    "partition": "number",
                    "offset": "number",
                    "to": "text",
                    "original_topic": "text",
                    "original_partition": "number",
                    "original_offset": "number",
                    "original_timestamp_ms": "number",
                    "attempts": "number",
                    "group": "text",
                    "error": "text",
                }
            ],
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _redrive, "topics")


async def _redrive(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.deadletter.letters import dead_letter_topic
    from strandline.client.deadletter.redrive import redrive

    await existing_topic(admin, dead_letter_topic(options.topic))
    with Progress() as progress:
        letters = await redrive(
            options.topic,
            settings_of(options),
            to=options.to,
            count_max=options.max,
            is_dry_run=options.dry_run,
            from_beginning=options.from_beginning,
            transactional_id=options.transactional_id,
            call_seconds_max=options.timeout,
            on_progress=lambda count: progress.say(count_of(count, "letter")),
        )
    if options.json:
        print_json(
            {
                "topic": options.topic,
                "dry_run": options.dry_run,
                "count": len(letters),
                "letters": [asdict(letter) for letter in letters],
            }
        )
        return 0
    did = "would be put back" if options.dry_run else "put back"
    print(f"{count_of(len(letters), 'letter')} of {options.topic}.dlq {did}")
    for (to, why), count in Counter((letter.to, letter.error) for letter in letters).most_common(20):
        print(f"  {count:>6}  to {to}  {why[:200]}")
    return 0
