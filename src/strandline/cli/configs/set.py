"""`strandline configs set`: changes single settings and leaves the others as they are."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import key_values
from strandline.cli.configs.resources import add_resource, check_resource, kind_of, resource_of
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Changes single settings and leaves the others as they are."
    parser.add_argument("setting", nargs="*", metavar="KEY=VALUE", help="the settings to set")
    parser.add_argument(
        "--delete",
        action="append",
        default=[],
        metavar="KEY",
        help="reset this setting to its default; repeat it for several",
    )
    parser.add_argument(
        "--append",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="add a value to a setting that is a list",
    )
    parser.add_argument(
        "--subtract",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="remove a value from a setting that is a list",
    )
    add_resource(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and only say whether the change would succeed"
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "type": "text",
            "name": "text",
            "changes": [{"key": "text", "operation": "text", "value": "text?"}],
            "dry_run": "flag",
        },
    )


def call(options: argparse.Namespace) -> int:
    options.changes = [
        *(("set", key, value) for key, value in key_values(options.setting, "configs set").items()),
        *(("delete", key, None) for key in options.delete),
        *(("append", key, value) for key, value in key_values(options.append, "--append").items()),
        *(("subtract", key, value) for key, value in key_values(options.subtract, "--subtract").items()),
    ]
    if not options.changes:
        raise usage("nothing to change: give KEY=VALUE, --delete KEY, --append or --subtract")
    return run(options, _set, "configs", "topics")


async def _set(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.configs import ConfigChange, Operation

    await check_resource(admin, options)
    resource = resource_of(options)
    changes = [
        ConfigChange(name=key, value=value, operation=Operation[operation.upper()])
        for operation, key, value in options.changes
    ]
    await admin.alter_configs({resource: changes}, validate_only=options.dry_run)
    if options.json:
        rows = [{"key": key, "operation": did, "value": value} for did, key, value in options.changes]
        print_json(
            {"type": kind_of(resource), "name": resource.name, "changes": rows, "dry_run": options.dry_run}
        )
        return DONE
    did = "would be changed" if options.dry_run else "changed"
    print(
        f"{kind_of(resource)} {resource.name or '(all)'} {did}: {', '.join(key for _, key, _ in options.changes)}"
    )
    return DONE
