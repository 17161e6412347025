"""`strandline schemas diff`: shows the changes between two versions, and which readers they break."""

from __future__ import annotations

import argparse
import difflib
import re
from typing import TYPE_CHECKING, Any

from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.output.document import add_json, print_json
from strandline.cli.schemas.connection import Refused, add_registry_option, ask, fail, in_path, pretty

if TYPE_CHECKING:
    from strandline.registry.formats.parsed import ParsedSchema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the changes between two versions of a subject, and whether readers with one version can read data of "
        "the other. The exit code is 1 if one of them cannot."
    )
    parser.add_argument("subject", metavar="SUBJECT")
    parser.add_argument(
        "--old", metavar="N", help="the older version (default: the version before the new one)"
    )
    parser.add_argument("--new", default="latest", metavar="N", help="the newer version (default: latest)")
    add_registry_option(parser)
    reading = {"reader": "number", "writer": "number", "can_read": "flag", "reasons": ["text"]}
    add_json(parser, {"old": "number", "new": "number", "lines": ["text"], "readings": [reading]})


def call(options: argparse.Namespace) -> int:
    subject = in_path(options.subject)
    try:
        new = ask(options, "GET", f"/subjects/{subject}/versions/{in_path(options.new)}")
        old_version = options.old or _version_before(options, subject, new["version"])
        old = ask(options, "GET", f"/subjects/{subject}/versions/{in_path(str(old_version))}")
        before, after = parse(options, old), parse(options, new)
    except Refused as error:
        return fail(error)
    old_lines, new_lines = (pretty(each["schemaType"], each["schema"]).splitlines() for each in (old, new))
    lines = list(
        difflib.unified_diff(old_lines, new_lines, _name(old["version"]), _name(new["version"]), lineterm="")
    )
    readings = [
        _reading(after, before, new["version"], old["version"]),
        _reading(before, after, old["version"], new["version"]),
    ]
    if options.json:
        print_json({"old": old["version"], "new": new["version"], "lines": lines, "readings": readings})
    else:
        print(*lines, *map(_told, readings), sep="\n")
    return DONE if all(each["can_read"] for each in readings) else FAILED


def _version_before(options: argparse.Namespace, subject: str, version: int) -> int:
    earlier = [each for each in ask(options, "GET", f"/subjects/{subject}/versions") if each < version]
    if not earlier:
        raise Refused(f"{options.subject} has no version before {version}")
    return int(earlier[-1])


def parse(options: argparse.Namespace, schema: dict[str, Any]) -> ParsedSchema:
    """Returns a schema of the registry, with everything that it imports. Raises Refused."""
    from strandline.registry.formats.parsed import InvalidSchema, Reference
    from strandline.registry.formats.parsing import parse_schema

    resolved: dict[str, str] = {}

    def visit(references: list[dict[str, Any]]) -> None:
        for each in references:
            if each["name"] not in resolved:
                place = f"/subjects/{in_path(each['subject'])}/versions/{each['version']}?deleted=true"
                imported = ask(options, "GET", place)
                visit(imported.get("references", []))
                resolved[each["name"]] = imported["schema"]

    references = schema.get("references") or []
    visit(references)
    named = tuple(Reference(each["name"], each["subject"], each["version"]) for each in references)
    try:
        return parse_schema(schema["schemaType"], schema["schema"], named, resolved, is_new=False)
    except InvalidSchema as error:
        raise Refused(str(error)) from None


def _reading(reader: ParsedSchema, writer: ParsedSchema, version: int, writer_version: int) -> dict[str, Any]:
    """Returns whether readers with one version can read data of the other, in the form of the JSON."""
    if reader.type != writer.type:
        reasons = [f"the type is {reader.type}, and that of the data is {writer.type}"]
    else:
        names = (_name(version), _name(writer_version))
        reasons = [in_words(reason, *names) for reason in reader.incompatibilities(writer)]
    return {"reader": version, "writer": writer_version, "can_read": not reasons, "reasons": reasons}


def _told(reading: dict[str, Any]) -> str:
    can = "can" if reading["can_read"] else "cannot"
    lines = [f"Readers with {_name(reading['reader'])} {can} read data of {_name(reading['writer'])}."]
    return "\n".join(lines + [f"  - {reason}" for reason in reading["reasons"]])


def _name(version: int) -> str:
    return f"version {version}"


def in_words(reason: str, reader: str, writer: str) -> str:
    """Returns the sentence in a reason, without the codes around it."""
    found = re.search(r"description:['\"](.*?)['\"](?:, additionalInfo|\})", reason)
    sentence = found.group(1) if found and found.group(1) else reason
    for name in (reader, writer):
        sentence = sentence.replace("the %s schema", name, 1).replace("The %s schema", name, 1)
    return sentence.replace("%s", "schema")
