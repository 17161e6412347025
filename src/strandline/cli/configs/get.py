"""`strandline configs get`, and `diff`, which shows what differs from the default."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.configs.resources import add_resource, check_resource, kind_of, resource_of
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import not_found
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.admin.configs import ConfigEntry


def add_arguments(parser: argparse.ArgumentParser, *, only_changed: bool = False) -> None:
    parser.description = (
        "Shows the settings that are not at their default, with the source of each value."
        if only_changed
        else "Shows settings with their values and sources. Brokers hide sensitive values."
    )
    parser.add_argument("key", nargs="*", metavar="KEY", help="show only these settings")
    add_resource(parser)
    parser.add_argument("--documentation", action="store_true", help="show the meaning of each setting")
    parser.set_defaults(only_changed=only_changed)
    add_connection(parser)
    add_json(
        parser,
        {
            "type": "text",
            "name": "text",
            "configs": [
                {
                    "key": "text",
                    "value": "text?",
                    "source": "text",
                    "default": "text?",
                    "read_only": "flag",
                    "sensitive": "flag",
                    "documentation": "text?",
                }
            ],
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _get, "configs", "topics")


async def _get(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.configs import ConfigSource

    await check_resource(admin, options)
    resource = resource_of(options)
    found = (
        await admin.describe_configs(
            [resource],
            names=options.key or None,
            include_synonyms=True,
            include_documentation=options.documentation,
        )
    )[resource]
    unknown = [key for key in options.key if key not in found]
    if unknown:
        raise not_found(f"{kind_of(resource)} {resource.name} has no setting {', '.join(unknown)}")
    entries = [
        entry
        for _, entry in sorted(found.items())
        if not options.only_changed or entry.source not in (ConfigSource.DEFAULT, ConfigSource.UNKNOWN)
    ]
    if options.json:
        configs = [_document(entry) for entry in entries]
        print_json({"type": kind_of(resource), "name": resource.name, "configs": configs})
    elif entries:
        show(_lines(entries, options))
    else:
        print("every setting has its default" if options.only_changed else "no settings of its own")
    return DONE


def _source(entry: ConfigEntry) -> str:
    from strandline.client.admin.configs import ConfigSource

    try:
        return ConfigSource(entry.source).name.lower().replace("_", "-")
    except ValueError:
        return str(entry.source)


def _default(entry: ConfigEntry) -> str | None:
    """Returns the value that would hold without this setting: the next of its synonyms."""
    others = [value for _, value, source in entry.synonyms if source != entry.source]
    return others[0] if others else None


def _document(entry: ConfigEntry) -> dict[str, object]:
    return {
        "key": entry.name,
        "value": entry.value,
        "source": _source(entry),
        "default": _default(entry) if entry.source != 5 else entry.value,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "documentation": entry.documentation,
    }


def _lines(entries: list[ConfigEntry], options: argparse.Namespace) -> list[str]:
    if options.documentation:
        return [
            line
            for entry in entries
            for line in (
                f"{entry.name}={_value(entry)}  ({_source(entry)})",
                f"    {entry.documentation or ''}",
            )
        ]
    rows = [(entry.name, _value(entry), _source(entry), _default(entry)) for entry in entries]
    return table(("KEY", "VALUE", "FROM", "OTHERWISE"), rows)


def _value(entry: ConfigEntry) -> str:
    return "(hidden)" if entry.is_sensitive else "(null)" if entry.value is None else entry.value
