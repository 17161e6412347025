"""`strandline schemas delete`: deletes a subject or one version of it, after asking."""

from __future__ import annotations

import argparse
from typing import Any

from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.schemas.connection import Refused, add_registry_option, ask, fail, in_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Deletes a subject, or one of its versions. The deletion hides it, and data that was written with it can "
        "still be read. --permanent then deletes for good what was deleted before."
    )
    parser.add_argument("subject", metavar="SUBJECT")
    parser.add_argument("--version", metavar="N", help="delete only this version")
    parser.add_argument(
        "--permanent", action="store_true", help="delete for good; records with its id become unreadable"
    )
    add_yes(parser)
    add_registry_option(parser)
    add_json(parser, {"subject": "text", "versions": ["number"], "is_permanent": "flag"})


def call(options: argparse.Namespace) -> int:
    subject = f"/subjects/{in_path(options.subject)}"
    try:
        versions = _versions(options, subject)
        named = ", ".join(map(str, versions))
        after = " Records with its id become unreadable." if options.permanent else ""
        if not confirmed(options, f"Delete {options.subject} version {named}?{after}"):
            return FAILED
        place = subject if options.version is None else f"{subject}/versions/{in_path(options.version)}"
        deleted = ask(options, "DELETE", f"{place}{'?permanent=true' if options.permanent else ''}")
    except Refused as error:
        return fail(error)
    gone = deleted if isinstance(deleted, list) else [deleted]
    if options.json:
        print_json({"subject": options.subject, "versions": gone, "is_permanent": options.permanent})
    else:
        for_good = "for good " if options.permanent else ""
        print(f"deleted {for_good}{options.subject} version {', '.join(map(str, gone))}")
    return DONE


def _versions(options: argparse.Namespace, subject: str) -> list[Any]:
    """Returns the versions to delete; with --permanent those that were deleted before."""
    if options.version is not None:
        return [options.version]
    present: list[Any] = ask(
        options, "GET", f"{subject}/versions{'?deleted=true' if options.permanent else ''}"
    )
    return present
