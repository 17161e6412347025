"""`strandline topics create` makes topics, with settings and an assignment if they are given."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import key_values, replica_assignment, whole_number
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of
from strandline.cli.presets import add_preset, preset_of

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Creates topics. Without numbers of partitions and replicas the cluster's defaults count."
    )
    parser.add_argument("topic", nargs="+", metavar="NAME", help="the names of the new topics")
    parser.add_argument(
        "--partitions", "-p", type=whole_number, metavar="COUNT", help="the number of partitions"
    )
    parser.add_argument(
        "--replication-factor",
        "-r",
        type=whole_number,
        metavar="COUNT",
        help="the number of replicas of each partition",
    )
    parser.add_argument(
        "--config",
        "-c",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting; repeat it for several",
    )
    parser.add_argument(
        "--replica-assignment",
        type=replica_assignment,
        metavar="LIST",
        help="the brokers of each partition, as 1:2:3,2:3:1 for two partitions",
    )
    add_preset(parser, "a replication factor and a group of settings")
    parser.add_argument(
        "--if-not-exists", action="store_true", help="do nothing for a topic that exists already"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="create nothing, and only say whether the creation would succeed",
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "topics": [
                {"name": "text", "partitions": "number", "replication_factor": "number", "created": "flag"}
            ],
            "dry_run": "flag",
        },
    )


def call(options: argparse.Namespace) -> int:
    if options.replica_assignment and (options.partitions or options.replication_factor):
        raise usage(
            "--replica-assignment says how many partitions and replicas there are: leave out the counts"
        )
    options.configs = key_values(options.config, "--config")
    preset = preset_of(options)
    if preset is not None:
        options.configs = preset.topic_configs | options.configs
        if options.replica_assignment is None:
            options.replication_factor = options.replication_factor or preset.replication_factor
    return run(options, _create, "topics")


async def _create(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.topics import NewTopic

    present = set(await admin.list_topics(include_internal=True)) if options.if_not_exists else set()
    topics = [
        NewTopic(
            name=name,
            partitions=options.partitions or -1,
            replication_factor=options.replication_factor or -1,
            configs=options.configs,
            assignment=options.replica_assignment,
        )
        for name in dict.fromkeys(options.topic)
        if name not in present
    ]
    created = await admin.create_topics(topics, validate_only=options.dry_run) if topics else {}
    found = []
    for name in dict.fromkeys(options.topic):
        if name in created:
            partitions, replicas = created[name].partitions, created[name].replication_factor
        else:
            known = (await admin.describe_topics([name]))[name].partitions
            partitions, replicas = len(known), len(known[0].replicas)
        found.append((name, partitions, replicas, name in created and not options.dry_run))
    if options.json:
        keys = ("name", "partitions", "replication_factor", "created")
        print_json(
            {"topics": [dict(zip(keys, each, strict=True)) for each in found], "dry_run": options.dry_run}
        )
        return DONE
    for name, partitions, replicas, is_created in found:
        numbers = f"{count_of(partitions, 'partition')}, {count_of(replicas, 'replica')} each"
        did = "created" if is_created else "would be created" if name in created else "exists"
        print(f"topic {name} {did}: {numbers}")
    return DONE
