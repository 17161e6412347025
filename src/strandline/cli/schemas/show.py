"""`strandline schemas show` prints one version of a subject."""

from __future__ import annotations

import argparse
import json

from strandline.cli.output.document import add_json
from strandline.cli.schemas.connection import Refused, add_registry_option, ask, fail, in_path, pretty


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Shows a schema: a version of a subject, or the schema with an id."
    parser.add_argument("subject", metavar="SUBJECT|ID", help="a subject, or with --id a number")
    parser.add_argument("--version", default="latest", metavar="N", help="the version (default: latest)")
    parser.add_argument("--id", action="store_true", help="SUBJECT is the id of a schema")
    add_json(parser, {"schema": "text", "schemaType": "text", "<field of the registry>": "any"})
    add_registry_option(parser)


def call(options: argparse.Namespace) -> int:
    name = in_path(options.subject)
    path = f"/schemas/ids/{name}" if options.id else f"/subjects/{name}/versions/{in_path(options.version)}"
    try:
        found = ask(options, "GET", path)
    except Refused as error:
        return fail(error)
    if options.json:
        print(json.dumps(found))
        return 0
    if "subject" in found:
        print(f"{found['subject']} version {found['version']}, id {found['id']}, {found['schemaType']}")
    for reference in found.get("references", ()):
        print(f"imports {reference['name']} from {reference['subject']} version {reference['version']}")
    print(pretty(found["schemaType"], found["schema"]))
    return 0
