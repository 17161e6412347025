"""`strandline schemas list` names the subjects of a registry and their versions."""

from __future__ import annotations

import argparse
import json

from strandline.cli.output.document import add_json
from strandline.cli.schemas.connection import Refused, add_registry_option, ask, fail, in_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists subjects with the type, the versions and the id of the latest schema."
    parser.add_argument(
        "prefix", nargs="?", default="", metavar="PREFIX", help="list only subjects that begin with this text"
    )
    parser.add_argument(
        "--deleted", action="store_true", help="list deleted subjects too, unless they were deleted for good"
    )
    add_json(parser, [{"subject": "text", "type": "text", "versions": ["number"], "id": "number"}])
    add_registry_option(parser)


def call(options: argparse.Namespace) -> int:
    deleted = str(options.deleted).lower()
    prefix = in_path(options.prefix if options.prefix.startswith(":") else f":*:{options.prefix}")
    try:
        found = ask(options, "GET", f"/schemas?subjectPrefix={prefix}&deleted={deleted}&limit=1000")
    except Refused as error:
        return fail(error)
    by_subject: dict[str, list[dict[str, object]]] = {}
    for schema in found:
        by_subject.setdefault(schema["subject"], []).append(schema)
    rows = [
        {
            "subject": subject,
            "type": schemas[-1]["schemaType"],
            "versions": [schema["version"] for schema in schemas],
            "id": schemas[-1]["id"],
        }
        for subject, schemas in by_subject.items()
    ]
    if options.json:
        print(json.dumps(rows))
        return 0
    if not rows:
        print("no schemas")
        return 0
    width = max(len(str(row["subject"])) for row in rows)
    print(f"{'subject':<{width}}  {'type':<8}  {'versions':<16}  latest id")
    for row in rows:
        versions = ", ".join(map(str, row["versions"]))  # type: ignore[call-overload]
        print(f"{row['subject']:<{width}}  {row['type']:<8}  {versions:<16}  {row['id']}")
    return 0
