"""`strandline quotas list|set|remove`: how much users, clients and addresses may use."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import key_values
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.admin.access import QuotaEntity

_DEFAULT = "(default)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list quotas", description="Lists all quotas.")
    setting = actions.add_parser(
        "set",
        help="set quotas of users, client ids or addresses",
        description="Sets quotas, such as producer_byte_rate=1048576, consumer_byte_rate, request_percentage, "
        "controller_mutation_rate, or connection_creation_rate for an address.",
    )
    removed = actions.add_parser(
        "remove", help="remove quotas of users, client ids or addresses", description="Removes quotas."
    )
    for each in (setting, removed):
        each.add_argument(
            "--user", metavar="NAME", help="the user; an empty text stands for the default of all users"
        )
        each.add_argument(
            "--client-id",
            metavar="ID",
            help="the client id; an empty text stands for the default of all client ids",
        )
        each.add_argument(
            "--ip",
            metavar="ADDRESS",
            help="the address; an empty text stands for the default of all addresses",
        )
    setting.add_argument("quota", nargs="+", metavar="KEY=VALUE", help="the quotas to set")
    removed.add_argument("quota", nargs="+", metavar="KEY", help="the names of the quotas to remove")
    for each in (listed, setting, removed):
        add_connection(each)
        add_json(each, {"quotas": [{"entity": {"<type>": "text?"}, "quotas": {"<key>": "number"}}]})


def call(options: argparse.Namespace) -> int:
    if options.action != "list":
        options.entity = _entity(options)
        options.changes = _changes(options)
    return run(options, _list if options.action == "list" else _change, "access")


def _entity(options: argparse.Namespace) -> QuotaEntity:
    """Returns the entity that the options name; an empty name is the default."""
    parts = (("user", options.user), ("client-id", options.client_id), ("ip", options.ip))
    named = tuple((kind, name or None) for kind, name in parts if name is not None)
    if not named:
        raise usage("name an entity: --user, --client-id, --user with --client-id, or --ip")
    if options.ip is not None and len(named) > 1:
        raise usage("--ip cannot be combined with --user or --client-id")
    return named


def _changes(options: argparse.Namespace) -> dict[str, float | None]:
    if options.action == "remove":
        return dict.fromkeys(options.quota)
    try:
        return {key: float(value) for key, value in key_values(options.quota, "quotas set").items()}
    except ValueError as error:
        raise usage(f"quotas set: a quota is a number: {error}") from error


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    found = await admin.describe_client_quotas()
    if options.json:
        rows = [{"entity": dict(entity), "quotas": quotas} for entity, quotas in found.items()]
        print_json({"quotas": rows})
        return DONE
    cells = [
        (" ".join(f"{kind}={name or _DEFAULT}" for kind, name in entity), f"{key}={value:.15g}")
        for entity, quotas in found.items()
        for key, value in sorted(quotas.items())
    ]
    show(table(("ENTITY", "QUOTA"), cells) or ["no quotas"])
    return DONE


async def _change(admin: Admin, options: argparse.Namespace) -> int:
    await admin.alter_client_quotas({options.entity: options.changes})
    return await _list(admin, options)
