"""`strandline topics alter`: adds partitions and changes settings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import key_values, whole_number
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.topics.names import matching_topics

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Raises the number of partitions, or changes settings. After partitions were added, keys may go to other "
        "partitions. Replicas are changed by `strandline reassign`."
    )
    parser.add_argument(
        "topic", nargs="+", metavar="TOPIC", help="the topics; * and ? stand for any characters"
    )
    parser.add_argument(
        "--partitions", "-p", type=whole_number, metavar="COUNT", help="the new number of partitions"
    )
    parser.add_argument(
        "--config",
        "-c",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set this; repeat it for several",
    )
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="KEY",
        help="reset this setting to its default; repeat it for several",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and only say whether the change would succeed"
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "topics": ["text"],
            "partitions": "number?",
            "set": {"<key>": "text"},
            "deleted": ["text"],
            "dry_run": "flag",
        },
    )


def call(options: argparse.Namespace) -> int:
    options.configs = key_values(options.config, "--config")
    if not (options.partitions or options.configs or options.delete_config):
        raise usage("nothing to change: give --partitions, --config or --delete-config")
    return run(options, _alter, "topics", "configs")


async def _alter(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.configs import ConfigChange, ConfigResource, Operation

    names = await matching_topics(admin, options.topic)
    changes = [ConfigChange(name=key, value=value) for key, value in options.configs.items()]
    changes += [
        ConfigChange(name=key, value=None, operation=Operation.DELETE) for key in options.delete_config
    ]
    if changes:
        await admin.alter_configs(
            {ConfigResource.topic(name): changes for name in names}, validate_only=options.dry_run
        )
    if options.partitions:
        counts = {
            name: options.partitions
            for name, topic in (await admin.describe_topics(names)).items()
            if len(topic.partitions) != options.partitions
        }
        if counts:
            await admin.create_partitions(counts, validate_only=options.dry_run)
    if options.json:
        print_json(
            {
                "topics": names,
                "partitions": options.partitions,
                "set": options.configs,
                "deleted": options.delete_config,
                "dry_run": options.dry_run,
            }
        )
        return DONE
    did = "would be changed" if options.dry_run else "changed"
    for name in names:
        print(f"topic {name} {did}")
    return DONE
