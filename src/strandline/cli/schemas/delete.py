"""`strandline schemas delete`."""

from __future__ import annotations

import argparse

from strandline.cli.schemas.connection import Refused, add_registry_option, ask, fail, in_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Deletes a subject, or one of its versions. That hides it; data that was written with it can still be read. "
        "--permanent deletes for good what was deleted before."
    )
    parser.add_argument("subject", metavar="SUBJECT")
    parser.add_argument("--version", metavar="N", help="only this version")
    parser.add_argument(
        "--permanent", action="store_true", help="for good: records with its id become unreadable"
    )
    add_registry_option(parser)


def call(options: argparse.Namespace) -> int:
    path = f"/subjects/{in_path(options.subject)}"
    if options.version is not None:
        path += f"/versions/{in_path(options.version)}"
    try:
        deleted = ask(options, "DELETE", f"{path}{'?permanent=true' if options.permanent else ''}")
    except Refused as error:
        return fail(error)
    versions = ", ".join(map(str, deleted)) if isinstance(deleted, list) else str(deleted)
    print(f"deleted {'for good ' if options.permanent else ''}{options.subject} version {versions}")
    return 0
