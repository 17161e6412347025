"""`strandline schemas register` registers the schema in a file under a subject."""

from __future__ import annotations

import argparse
import json

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Registers the schema in a file under a subject. A schema that is registered already keeps its id."
    )
    parser.add_argument("subject", metavar="SUBJECT")
    add_schema_options(parser)
    parser.add_argument("--normalize", action="store_true", help="store the normal form of the schema")
    add_json(parser, {"id": "number", "version": "number", "<field of the registry>": "any"})
    add_registry_option(parser)


def call(options: argparse.Namespace) -> int:
    query = "?normalize=true" if options.normalize else ""
    try:
        made = ask(
            options, "POST", f"/subjects/{in_path(options.subject)}/versions{query}", read_schema(options)
        )
    except Refused as error:
        return fail(error)
    if options.json:
        print(json.dumps(made))
    else:
        print(f"{options.subject} version {made['version']} has the id {made['id']}")
    return 0
