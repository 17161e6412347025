"""`strandline dlq redrive`: dead letters are put back into the topics that they came from."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from strandline.cli.arguments import seconds

_CLEAR_LINE = "\x1b[K"


def add_arguments(dlq: argparse.ArgumentParser) -> None:
    actions = dlq.add_subparsers(dest="action", required=True, metavar="ACTION")
    redrive = actions.add_parser(
        "redrive",
        help="put the letters of TOPIC.dlq back",
        description="Puts the letters of TOPIC.dlq back into the topics that they came from. Each is put back once: "
        "the next redrive goes on where this one ends.",
    )
    redrive.add_argument(
        "topic", metavar="TOPIC", help="the topic whose dead letters these are, without .dlq"
    )
    redrive.add_argument(
        "--bootstrap-server", default="localhost:9092", metavar="HOST:PORT", help="(default: localhost:9092)"
    )
    redrive.add_argument("--to", metavar="TOPIC", help="put them there instead")
    redrive.add_argument("--max", type=int, metavar="COUNT", help="put back at most so many")
    redrive.add_argument("--dry-run", action="store_true", help="only say what would be done")
    redrive.add_argument(
        "--from-beginning", action="store_true", help="also those that were put back already"
    )
    redrive.add_argument(
        "--transactional-id", metavar="ID", help="put them back in transactions, with the offsets"
    )
    redrive.add_argument(
        "--timeout", type=seconds, default=30.0, metavar="SECONDS", help="for each call (default: 30)"
    )
    redrive.add_argument("--json", action="store_true", help="print one JSON object")


def call(options: argparse.Namespace) -> int:
    from strandline.client.deadletter.redrive import redrive
    from strandline.client.errors import KafkaError

    async def work() -> Any:
        return await redrive(
            options.topic,
            {"bootstrap.servers": options.bootstrap_server},
            to=options.to,
            count_max=options.max,
            is_dry_run=options.dry_run,
            from_beginning=options.from_beginning,
            transactional_id=options.transactional_id,
            call_seconds_max=options.timeout,
            on_progress=_show if sys.stderr.isatty() else lambda count: None,
        )

    try:
        letters = asyncio.run(work())
    except KafkaError as error:
        print(f"strandline: {error}", file=sys.stderr)
        return 1
    finally:
        if sys.stderr.isatty():
            print("\r", end=_CLEAR_LINE, file=sys.stderr, flush=True)
    if options.json:
        print(
            json.dumps(
                {
                    "topic": options.topic,
                    "dry_run": options.dry_run,
                    "count": len(letters),
                    "letters": [asdict(letter) for letter in letters],
                }
            )
        )
        return 0
    did = "would be put back" if options.dry_run else "put back"
    print(f"{len(letters)} letters of {options.topic}.dlq {did}")
    for (to, why), count in Counter((letter.to, letter.error) for letter in letters).most_common(20):
        print(f"  {count:>6}  to {to}  {why[:200]}")
    return 0


def _show(count: int) -> None:
    print(f"\r{count} letters", end="", file=sys.stderr, flush=True)
