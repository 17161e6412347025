"""The option that selects partitions of a group."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import partition_list
from strandline.cli.failures import not_found, usage
from strandline.cli.topics.names import existing_topic

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin


def add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:PARTITIONS]",
        help="only this topic, or partitions of it as orders:0,2; repeat it for several (default: all that have "
        "offsets)",
    )


async def partitions_in_scope(
    admin: Admin, options: argparse.Namespace, otherwise: list[TopicPartition]
) -> list[TopicPartition]:
    """Returns the partitions that --topic names; without it those given as `others`."""
    from strandline.base.ids import TopicPartition

    found: dict[TopicPartition, None] = {}
    for given in options.topic:
        name, colon, numbers = given.partition(":")
        topic = await existing_topic(admin, name)
        count = len(topic.partitions)
        try:
            wanted = partition_list(numbers) if colon else range(count)
        except argparse.ArgumentTypeError as error:
            raise usage(f"--topic {given}: {error}") from error
        if max(wanted) >= count:
            raise not_found(f"--topic {given}: {name} has the partitions 0 to {count - 1}")
        found.update(dict.fromkeys(TopicPartition(name, number) for number in wanted))
    return sorted(found) if options.topic else sorted(otherwise)
