"""`strandline schemas check`: checks whether a schema may be registered, and whether it can decode existing data."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from strandline.cli.arguments import count
from strandline.cli.connection import add_connection
from strandline.cli.exit_codes import DONE, FAILED, UNREACHABLE
from strandline.cli.output.document import add_json
from strandline.cli.schemas.connection import (
    Refused,
    add_registry_option,
    add_schema_options,
    ask,
    fail,
    in_path,
    read_schema,
)

_SHOWN_MAX: Final = 5  # the most undecodable records that are shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Asks the registry whether the schema in a file is compatible with the versions of a subject. With --topic "
        "it also decodes the newest records of a topic with the new schema, which checks the data itself."
    )
    parser.add_argument("subject", metavar="SUBJECT")
    add_schema_options(parser)
    parser.add_argument("--topic", metavar="TOPIC", help="decode the newest records of this topic too")
    parser.add_argument(
        "--records",
        type=count,
        default=1000,
        metavar="COUNT",
        help="the number of newest records of each partition (default: 1000)",
    )
    parser.add_argument(
        "--keys", action="store_true", help="decode the keys of the records and not their values"
    )
    add_json(parser, {"compatible": "flag", "messages": ["text"], "records?": {"<field>": "any"}})
    add_registry_option(parser)
    add_connection(parser)


def call(options: argparse.Namespace) -> int:
    try:
        schema = read_schema(options)
        path = f"/compatibility/subjects/{in_path(options.subject)}/versions?verbose=true"
        verdict = ask(options, "POST", path, schema)
        result: dict[str, Any] = {
            "compatible": verdict["is_compatible"],
            "messages": verdict.get("messages", []),
        }
        if options.topic:
            result["records"] = _read_records(options, schema)
    except Refused as error:
        return fail(error)
    if options.json:
        print(json.dumps(result))
    else:
        _say(options, result)
    is_good = result["compatible"] and not result.get("records", {}).get("failed")
    return DONE if is_good else FAILED


def _read_records(options: argparse.Namespace, schema: dict[str, Any]) -> dict[str, Any]:
    from strandline.cli.schemas.decoding import decode_newest
    from strandline.client.errors import KafkaError

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty() and total:
            filled = 30 * done // total
            end = "\n" if done == total else ""
            print(
                f"\r[{'#' * filled}{' ' * (30 - filled)}] {done}/{total}",
                end=end,
                file=sys.stderr,
                flush=True,
            )

    try:
        return decode_newest(options, schema, progress)
    except KafkaError as error:
        raise Refused(str(error), UNREACHABLE) from None


def _say(options: argparse.Namespace, result: dict[str, Any]) -> None:
    if result["compatible"]:
        print(f"The schema may follow the versions of {options.subject}.")
    else:
        print(f"The schema may NOT follow the versions of {options.subject}:")
        for message in result["messages"]:
            print(f"  {message}")
    records = result.get("records")
    if records is None:
        return
    print(
        f"It decodes {records['decoded']} of the newest {records['read']} records of {options.topic}"
        + (f"; {records['skipped']} have no schema of this registry" if records["skipped"] else "")
        + "."
    )
    for each in records["failed"][:_SHOWN_MAX]:
        print(f"  partition {each['partition']} offset {each['offset']}, id {each['id']}: {each['error']}")
    if len(records["failed"]) > _SHOWN_MAX:
        print(f"  and {len(records['failed']) - _SHOWN_MAX} more")
