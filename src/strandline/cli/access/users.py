"""`strandline users list|set|remove`: SCRAM credentials."""

from __future__ import annotations

import argparse
import getpass
import hashlib
import os
import sys
from typing import TYPE_CHECKING, Final

from strandline.cli.access.names import MECHANISMS, name_of
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import not_found, usage
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin

_ITERATIONS: Final = (4096, 16_384)  # the bounds of Kafka's brokers
_SALT_BYTES: Final = 24
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser(
        "list", help="list users with their mechanisms", description="Lists SCRAM credentials."
    )
    listed.add_argument("user", nargs="*", metavar="USER", help="list only these users")
    setting = actions.add_parser(
        "set",
        help="add a user, or set a password",
        description="Sets a SCRAM credential. The command asks for the password, or reads it from stdin. It is not "
        "an argument, because every process on the machine can see arguments.",
    )
    removed = actions.add_parser(
        "remove", help="remove a credential", description="Removes a SCRAM credential."
    )
    for each in (setting, removed):
        each.add_argument("user", metavar="USER", help="the user's name")
        each.add_argument(
            "--mechanism",
            choices=tuple(MECHANISMS),
            default="SCRAM-SHA-512",
            help="the SCRAM mechanism (default: SCRAM-SHA-512)",
        )
    setting.add_argument(
        "--iterations",
        type=int,
        default=_ITERATIONS[0],
        metavar="N",
        help="the iterations of the hash (default: 4096)",
    )
    add_yes(removed)
    for each in (listed, setting, removed):
        add_connection(each)
        add_json(each, {"users": [{"user": "text", "mechanism": "text", "iterations": "number"}]})


def call(options: argparse.Namespace) -> int:
    if options.action == "set":
        low, high = _ITERATIONS
        if not low <= options.iterations <= high:
            raise usage(f"--iterations {options.iterations}: from {low} to {high}")
        options.password = _password()
    return run(options, {"list": _list, "set": _set, "remove": _remove}[options.action], "access")


def _password() -> str:
    if not sys.stdin.isatty():
        found = sys.stdin.readline().rstrip("\n")
    else:
        found = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != found:
            raise usage("the two passwords are not the same")
    if not found:
        raise usage("give a password on stdin")
    return found


def _print(options: argparse.Namespace, rows: list[tuple[str, str, int]], otherwise: str) -> None:
    if options.json:
        keys = ("user", "mechanism", "iterations")
        print_json({"users": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        show(table(("USER", "MECHANISM", "ITERATIONS"), rows) or [otherwise])


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    found = await admin.describe_scram_credentials(options.user or None)
    rows = [
        (user, name_of(MECHANISMS, each.mechanism), each.iterations)
        for user, credentials in sorted(found.items())
        for each in credentials
    ]
    _print(options, rows, "no users")
    return DONE


async def _set(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.wire.api.k51_alter_user_scram_credentials import ScramCredentialUpsertion

    salt = os.urandom(_SALT_BYTES)
    # RFC 5802: the broker gets the salted password, never the password itself.
    salted = hashlib.pbkdf2_hmac(
        _HASHES[options.mechanism], options.password.encode(), salt, options.iterations
    )
    credential = ScramCredentialUpsertion(
        name=options.user,
        mechanism=MECHANISMS[options.mechanism],
        iterations=options.iterations,
        salt=salt,
        salted_password=salted,
    )
    await admin.alter_scram_credentials(upsertions=[credential])
    _print(options, [(options.user, options.mechanism, options.iterations)], "")
    return DONE


async def _remove(admin: Admin, options: argparse.Namespace) -> int:
    known = await admin.describe_scram_credentials()
    number = MECHANISMS[options.mechanism]
    found = [each for each in known.get(options.user, ()) if each.mechanism == number]
    if not found:
        raise not_found(f"user {options.user} has no {options.mechanism} credential")
    if not confirmed(options, f"Remove the {options.mechanism} credential of {options.user}?"):
        return FAILED
    await admin.alter_scram_credentials(deletions=[(options.user, number)])
    _print(options, [(options.user, options.mechanism, found[0].iterations)], "")
    return DONE
