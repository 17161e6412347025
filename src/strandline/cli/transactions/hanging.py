"""`strandline transactions hanging`: finds transactions that block readers and that no coordinator will end
(KIP-664)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.arguments import duration_ms
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.groups.scope import add_scope, partitions_in_scope
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import moment, show, table

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Finds transactions that are open in a partition although their coordinator does not know them. Readers of "
        "committed records wait for them. `strandline transactions abort` ends one. The exit code is 1 if there are "
        "any."
    )
    add_scope(parser)
    parser.add_argument(
        "--older-than",
        type=duration_ms,
        default=900_000,
        metavar="DURATION",
        help="show transactions that are open for longer than this (default: 15m)",
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "transactions": [
                {
                    "topic": "text",
                    "partition": "number",
                    "producer_id": "number",
                    "epoch": "number",
                    "coordinator_epoch": "number",
                    "start_offset": "number",
                    "last_timestamp": "number",
                }
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _hanging, "producers", "topics")


async def _hanging(admin: Admin, options: argparse.Namespace) -> int:
    import time

    from strandline.base.ids import TopicPartition

    everything = [
        TopicPartition(topic.name, each.partition)
        for topic in await admin.describe_all_topics()
        for each in topic.partitions
        if each.leader_id >= 0
    ]
    partitions = await partitions_in_scope(admin, options, everything)
    latest_ms = time.time() * 1000 - options.older_than
    open_ones = [
        (where, each)
        for where, producers in (await admin.describe_producers(partitions)).items()
        for each in producers
        if each.transaction_start_offset >= 0 and each.last_timestamp_ms <= latest_ms
    ]
    known = await _ongoing(admin, [each.producer_id for _, each in open_ones]) if open_ones else {}
    rows = [
        {
            "topic": where.topic,
            "partition": where.partition,
            "producer_id": each.producer_id,
            "epoch": each.epoch,
            "coordinator_epoch": each.coordinator_epoch,
            "start_offset": each.transaction_start_offset,
            "last_timestamp": each.last_timestamp_ms,
        }
        for where, each in sorted(open_ones, key=lambda pair: pair[0])
        if where not in known.get(each.producer_id, ())
    ]
    if options.json:
        print_json({"transactions": rows})
    else:
        cells = [(*list(row.values())[:6], moment(int(str(row["last_timestamp"])))) for row in rows]
        head = ("TOPIC", "PARTITION", "PRODUCER", "EPOCH", "COORDINATOR EPOCH", "SINCE OFFSET", "LAST WRITE")
        show(table(head, cells) or ["no hanging transactions"])
    return FAILED if rows else DONE


async def _ongoing(admin: Admin, producer_ids: list[int]) -> dict[int, set[TopicPartition]]:
    """Returns the partitions of the ongoing transactions of all coordinators, by producer."""
    listed = await admin.list_transactions(producer_ids=producer_ids)
    described = (
        await admin.describe_transactions([each.transactional_id for each in listed]) if listed else {}
    )
    return {each.producer_id: set(each.partitions) for each in described.values()}
