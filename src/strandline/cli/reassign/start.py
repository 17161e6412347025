"""`strandline reassign start`: begins a reassignment, with a throttle if one is given, and waits for its end."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.cli.arguments import whole_number
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import not_found
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of, note
from strandline.cli.permissions import check_topic_is_visible
from strandline.cli.reassign import files
from strandline.cli.reassign.throttles import remove_throttles, set_throttles
from strandline.cli.reassign.watching import wait_until_done

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin

_LOOKS: Final = 5
_LOOK_AGAIN_S: Final = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Begins the reassignment of a file and waits until it is done. Ctrl-C ends the waiting and not the "
        "reassignment: `reassign status` shows it, `start` with the same file waits again, and `cancel` cancels it."
    )
    parser.add_argument("file", metavar="FILE", help="Kafka's JSON, as `reassign plan` prints it; - is stdin")
    parser.add_argument(
        "--throttle",
        type=whole_number,
        metavar="BYTES/S",
        help="the throttle of each broker in bytes a second, for these replicas only",
    )
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="do not wait for the end; then `reassign verify` removes the throttle",
    )
    add_yes(parser)
    add_connection(parser)
    add_json(parser, {"partitions": "number", "moves": "number", "done": "flag"})


def call(options: argparse.Namespace) -> int:
    options.wanted = files.read(options.file)
    return run(options, _start, "cluster", "topics", "configs")


async def _replicas_of(
    admin: Admin, wanted: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Returns the present replicas. A broker may not know a new topic yet, so it is asked again."""
    for looks_left in reversed(range(_LOOKS)):
        known = {topic.name: topic for topic in await admin.describe_all_topics()}
        missing = [
            each
            for each in wanted
            if each.topic not in known or each.partition >= len(known[each.topic].partitions)
        ]
        if not missing:
            break
        if not looks_left:
            await check_topic_is_visible(admin, missing[0].topic)
            raise not_found(f"there is no partition {missing[0]}")
        await asyncio.sleep(_LOOK_AGAIN_S)
    return {each: tuple(known[each.topic].partitions[each.partition].replicas) for each in wanted}


async def _check_brokers(admin: Admin, wanted: Mapping[TopicPartition, Iterable[int]]) -> None:
    """Raises an error if a broker does not exist, before anything is changed."""
    known = {node.node_id for node in (await admin.describe_cluster(include_fenced=True)).nodes}
    unknown = sorted({node for nodes in wanted.values() for node in nodes} - known)
    if unknown:
        there = ", ".join(map(str, sorted(known)))
        raise not_found(f"there is no broker {unknown[0]}; there are: {there}. Nothing was changed")


async def _begin(admin: Admin, changed: dict[TopicPartition, tuple[int, ...]], *, has_throttle: bool) -> None:
    """Has the moves begin. Throttles of partitions that are refused are removed; a part that began is told."""
    from strandline.client.admin.calls import PartialFailureError
    from strandline.client.errors import KafkaError

    try:
        await admin.reassign_partitions(changed)
    except KafkaError as error:
        refused = set(error.errors) if isinstance(error, PartialFailureError) else set(changed)
        if has_throttle:
            await remove_throttles(admin, refused)
        if len(refused) < len(changed):
            note(
                f"begun: {count_of(len(changed) - len(refused), 'partition')}, not the others; "
                "`strandline reassign verify FILE` shows them, `cancel FILE` takes them back"
            )
        raise


async def _wait(
    admin: Admin, wanted: Mapping[TopicPartition, Iterable[int]], options: argparse.Namespace
) -> None:
    try:
        await wait_until_done(admin, list(wanted))
    except asyncio.CancelledError:  # Ctrl-C
        throttle = ", with its throttle until `strandline reassign verify FILE` finds it done"
        note(
            f"\nthe reassignment goes on in the cluster{throttle if options.throttle is not None else ''}; "
            "the same command waits for it again, `strandline reassign cancel FILE` takes it back"
        )
        raise
    if options.throttle is not None:
        await remove_throttles(admin, wanted)


async def _start(admin: Admin, options: argparse.Namespace) -> int:
    wanted: dict[TopicPartition, tuple[int, ...]] = options.wanted
    current = await _replicas_of(admin, wanted)
    running = await admin.list_reassignments(list(wanted)) if wanted else {}
    changed = {
        each: nodes
        for each, nodes in wanted.items()
        if tuple(nodes) != tuple(current[each]) and each not in running
    }
    moves = sum(len(set(nodes) - set(current[each])) for each, nodes in changed.items())
    if changed:
        await _check_brokers(admin, changed)
        what = f"{count_of(len(changed), 'partition')}, {count_of(moves, 'replica')} to copy"
        if not confirmed(options, f"Reassign {what}?"):
            return FAILED
        if options.throttle is not None:
            await set_throttles(admin, options.throttle, current, wanted)
        await _begin(admin, changed, has_throttle=options.throttle is not None)
        note(f"begun: {what}")
    is_done = not options.no_wait
    if is_done:
        await _wait(admin, wanted, options)
    if options.json:
        print_json({"partitions": len(changed), "moves": moves, "done": is_done})
    else:
        print(
            "done"
            if is_done
            else "the reassignment has begun; `strandline reassign verify FILE` says when it is done"
        )
    return DONE
