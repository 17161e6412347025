"""`strandline transactions abort`: ends an open transaction."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import not_found, usage
from strandline.cli.groups.scope import add_scope, partitions_in_scope
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Aborts a transaction by its transactional id, which fences its producer, or a hanging transaction in a "
        "partition by the offset at which it began."
    )
    parser.add_argument(
        "transactional_id",
        nargs="?",
        metavar="TRANSACTIONAL_ID",
        help="the transactional id whose producer is fenced",
    )
    add_scope(parser)
    parser.add_argument(
        "--start-offset",
        type=int,
        metavar="OFFSET",
        help="the offset at which the transaction began, with --topic TOPIC:PARTITION",
    )
    add_yes(parser)
    add_connection(parser)
    add_json(
        parser,
        {"transactional_id": "text?", "topic": "text?", "partition": "number?", "producer_id": "number?"},
    )


def call(options: argparse.Namespace) -> int:
    if (options.transactional_id is None) == (options.start_offset is None):
        raise usage("give a TRANSACTIONAL_ID, or --topic TOPIC:PARTITION with --start-offset")
    if options.start_offset is not None and len(options.topic) != 1:
        raise usage("--start-offset needs one partition: --topic TOPIC:PARTITION")
    return run(options, _abort, "producers", "topics")


async def _abort(admin: Admin, options: argparse.Namespace) -> int:
    if options.transactional_id is not None:
        await admin.describe_transactions([options.transactional_id])
        if not confirmed(
            options, f"Fence the producer of {options.transactional_id} and abort its transaction?"
        ):
            return FAILED
        await admin.fence_producers([options.transactional_id])
        document = {
            "transactional_id": options.transactional_id,
            "topic": None,
            "partition": None,
            "producer_id": None,
        }
        text = f"the producer of {options.transactional_id} is fenced, its transaction aborted"
    else:
        (where,) = await partitions_in_scope(admin, options, [])
        producers = (await admin.describe_producers([where]))[where]
        found = [each for each in producers if each.transaction_start_offset == options.start_offset]
        if not found:
            raise not_found(f"no open transaction began at offset {options.start_offset} of {where}")
        if not confirmed(options, f"Abort the transaction of producer {found[0].producer_id} in {where}?"):
            return FAILED
        await admin.abort_transaction(
            where,
            producer_id=found[0].producer_id,
            epoch=found[0].epoch,
            coordinator_epoch=max(found[0].coordinator_epoch, 0),
        )
        document = {"transactional_id": None, **where._asdict(), "producer_id": found[0].producer_id}
        text = f"the transaction of producer {found[0].producer_id} in {where} is aborted"
    if options.json:
        print_json(document)
    else:
        print(text)
    return DONE
