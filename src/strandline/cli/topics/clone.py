"""`strandline topics clone`: creates a topic like another, without its records."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import whole_number
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of, note
from strandline.cli.topics.names import existing_topic

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Creates a topic with the partitions, replicas and settings of another. Records are not copied: "
        "`strandline consume A --json --exit | strandline produce B --from-json` does that."
    )
    parser.add_argument("topic", metavar="TOPIC", help="the existing topic")
    parser.add_argument("new", metavar="NAME", help="the name of the new topic")
    parser.add_argument(
        "--partitions",
        "-p",
        type=whole_number,
        metavar="COUNT",
        help="the number of partitions (default: as in the existing topic)",
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "name": "text",
            "partitions": "number",
            "replication_factor": "number",
            "configs": {"<key>": "text?"},
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _clone, "topics", "configs")


async def _clone(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.configs import ConfigResource, ConfigSource

    source = await existing_topic(admin, options.topic)
    resource = ConfigResource.topic(options.topic)
    entries = (await admin.describe_configs([resource]))[resource]
    configs = {
        name: entry.value or "" for name, entry in entries.items() if entry.source == ConfigSource.TOPIC
    }
    # Settings that name replicas of the old topic's partitions would mean nothing for the new one.
    configs = {name: value for name, value in configs.items() if not name.endswith("throttled.replicas")}
    created = await admin.create_topic(
        options.new,
        partitions=options.partitions or len(source.partitions),
        replication_factor=len(source.partitions[0].replicas),
        configs=configs,
    )
    partitions, replicas = created.partitions, created.replication_factor
    if options.json:
        print_json(
            {
                "name": options.new,
                "partitions": partitions,
                "replication_factor": replicas,
                "configs": configs,
            }
        )
        return DONE
    numbers = f"{count_of(partitions, 'partition')}, {count_of(replicas, 'replica')} each"
    print(f"topic {options.new} created like {options.topic}: {numbers}, {count_of(len(configs), 'setting')}")
    copying = (
        f"strandline consume {options.topic} --json --exit | strandline produce {options.new} --from-json"
    )
    note(f"Copy records with: {copying}")
    return DONE
