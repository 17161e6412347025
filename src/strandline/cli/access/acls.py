"""`strandline acls list|add|remove` shows and changes the rules of who may do what."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.access.names import CLUSTER_NAME, OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES, name_of
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import usage
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of, show, table

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.admin.access import Acl, AclFilter

_SHAPE = {
    "acls": [
        {
            "resource": "text",
            "name": "text",
            "pattern": "text",
            "principal": "text",
            "host": "text",
            "operation": "text",
            "permission": "text",
        }
    ]
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser(
        "list", help="list ACLs", description="Lists the ACLs that match the options."
    )
    added = actions.add_parser(
        "add", help="add ACLs", description="Adds an ACL for each operation and principal."
    )
    removed = actions.add_parser(
        "remove", help="remove ACLs", description="Removes the ACLs that match the options."
    )
    for each in (listed, added, removed):
        which = each.add_argument_group("resource")
        which.add_argument("--topic", metavar="TOPIC", help="a topic")
        which.add_argument("--group", metavar="GROUP", help="a group")
        which.add_argument("--transactional-id", metavar="ID", help="a transactional id")
        which.add_argument("--user", metavar="NAME", help="a user, for the delegation tokens of that user")
        which.add_argument("--cluster", action="store_true", help="the cluster")
        which.add_argument(
            "--pattern", choices=tuple(PATTERNS), help="how the name is matched (default: literal)"
        )
        each.add_argument(
            "--principal",
            action="append",
            default=[],
            metavar="User:NAME",
            help="the principal of the ACL; repeat it for several",
        )
        each.add_argument(
            "--operation",
            action="append",
            default=[],
            choices=tuple(OPERATIONS),
            help="the operation; repeat it for several",
        )
        each.add_argument("--host", metavar="ADDRESS", help="the client's address (default: any)")
        each.add_argument(
            "--deny", action="store_true", help="the ACL denies the operation (default: it allows it)"
        )
        add_connection(each)
        add_json(each, _SHAPE)
    for each in (added, removed):
        add_yes(each)


def call(options: argparse.Namespace) -> int:
    options.resource = _resource(options)
    if options.action == "add" and (
        options.resource is None or not options.principal or not options.operation
    ):
        raise usage("acls add: name a resource, --principal User:NAME and --operation")
    if options.action == "remove" and options.resource is None and not options.principal:
        raise usage("acls remove: name a resource or a --principal; all ACLs cannot be removed at once")
    for principal in options.principal:
        if ":" not in principal:
            raise usage(f"--principal {principal}: write it as User:{principal}")
    return run(options, _ACTIONS[options.action], "access")


def _resource(options: argparse.Namespace) -> tuple[int, str] | None:
    named = [
        (RESOURCES[kind], name)
        for kind, name in (
            ("topic", options.topic),
            ("group", options.group),
            ("transactional-id", options.transactional_id),
            ("user", options.user),
            ("cluster", CLUSTER_NAME if options.cluster else None),
        )
        if name is not None
    ]
    if len(named) > 1:
        raise usage("name one resource at a time")
    return named[0] if named else None


def _filters(options: argparse.Namespace) -> list[AclFilter]:
    from strandline.client.admin.access import ANY, AclFilter

    resource_type, name = options.resource or (ANY, None)
    pattern = (
        PATTERNS[options.pattern] if options.pattern else (PATTERNS["literal"] if options.resource else ANY)
    )
    return [
        AclFilter(
            resource_type=resource_type,
            resource_name=name,
            pattern_type=pattern,
            principal=principal,
            host=options.host,
            operation=operation,
            permission=PERMISSIONS["deny"] if options.deny else ANY,
        )
        for principal in options.principal or [None]
        for operation in [OPERATIONS[each] for each in options.operation] or [ANY]
    ]


def _print(options: argparse.Namespace, acls: list[Acl], otherwise: str) -> None:
    rows = [
        (
            name_of(RESOURCES, each.resource_type),
            each.resource_name,
            name_of(PATTERNS, each.pattern_type),
            each.principal,
            each.host,
            name_of(OPERATIONS, each.operation),
            name_of(PERMISSIONS, each.permission),
        )
        for each in acls
    ]
    if options.json:
        keys = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
        print_json({"acls": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        head = ("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
        show(table(head, rows) or [otherwise])


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    found = [acl for each in _filters(options) for acl in await admin.describe_acls(each)]
    _print(options, found, "no rules")
    return DONE


async def _add(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.access import Acl

    resource_type, name = options.resource
    acls = [
        Acl(
            resource_type=resource_type,
            resource_name=name,
            principal=principal,
            operation=OPERATIONS[operation],
            permission=PERMISSIONS["deny" if options.deny else "allow"],
            host=options.host or "*",
            pattern_type=PATTERNS[options.pattern or "literal"],
        )
        for principal in options.principal
        for operation in options.operation
    ]
    await admin.create_acls(acls)
    _print(options, acls, "")
    return DONE


async def _remove(admin: Admin, options: argparse.Namespace) -> int:
    found = [acl for each in _filters(options) for acl in await admin.describe_acls(each)]
    if found and not confirmed(options, f"Remove {count_of(len(found), 'ACL')}?"):
        return FAILED
    _print(options, await admin.delete_acls(_filters(options)) if found else [], "no ACLs match")
    return DONE


_ACTIONS = {"list": _list, "add": _add, "remove": _remove}
