"""`strandline reassign plan`: prints a balanced assignment with few moves, as Kafka's JSON. `planner.py` chooses the
replicas."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from strandline.cli.arguments import whole_number
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import not_found, usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import note
from strandline.cli.reassign import files, planner
from strandline.cli.topics.names import matching_topics

if TYPE_CHECKING:
    from strandline.client import Admin

_PARTITIONS = [{"topic": "text", "partition": "number", "replicas": ["number"]}]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prints, as JSON for `reassign start` or kafka-reassign-partitions.sh, an assignment that spreads replicas and "
        "leaders evenly over brokers and racks, and moves as few replicas as that needs. Nothing is changed."
    )
    parser.add_argument(
        "topic",
        nargs="*",
        metavar="TOPIC",
        help="the topics; * and ? stand for any characters (default: all topics)",
    )
    parser.add_argument(
        "--brokers",
        metavar="LIST",
        help="the brokers that may have replicas afterwards, as 1,2,3 (default: all)",
    )
    parser.add_argument(
        "--without",
        metavar="LIST",
        help="the brokers that may not have replicas afterwards, because they will be removed",
    )
    parser.add_argument(
        "--replication-factor",
        "-r",
        type=whole_number,
        metavar="N",
        help="the new number of replicas of each partition (default: unchanged)",
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "proposed": {"version": "number", "partitions": _PARTITIONS},
            "current": {"version": "number", "partitions": _PARTITIONS},
            "moves": "number",
        },
    )


def call(options: argparse.Namespace) -> int:
    if options.brokers and options.without:
        raise usage("--brokers and --without cannot be combined")
    return run(options, _plan, "topics")


async def _plan(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.base.ids import TopicPartition

    known = {node.node_id: node.rack for node in admin.brokers()}
    brokers = (
        [node for node in known if node not in _ids(options.without)] if options.without else list(known)
    )
    if options.brokers:
        brokers = _ids(options.brokers)
    for node_id in [*brokers, *_ids(options.without)]:
        if node_id not in known:
            raise not_found(f"there is no broker {node_id}; there are: {', '.join(map(str, known))}")
    names = await matching_topics(admin, options.topic or ["*"])
    topics = await admin.describe_topics(names)
    current = {
        TopicPartition(name, each.partition): each.replicas
        for name in names
        for each in topics[name].partitions
    }
    try:
        proposed = planner.plan(current, brokers, known, options.replication_factor)
    except ValueError as error:
        raise usage(str(error)) from error
    changed = {each: nodes for each, nodes in proposed.items() if tuple(nodes) != tuple(current[each])}
    moves = sum(len(set(nodes) - set(current[each])) for each, nodes in changed.items())
    if options.json:
        document = {
            "proposed": files.to_json(changed),
            "current": files.to_json({each: current[each] for each in changed}),
            "moves": moves,
        }
        print_json(document)
        return DONE
    print(json.dumps(files.to_json(changed)))
    note(
        f"partitions that change: {len(changed)} of {len(current)}, replicas to copy: {moves}. "
        "Save the output in a file, and begin with: strandline reassign start FILE"
    )
    return DONE


def _ids(text: str | None) -> list[int]:
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise usage(f"{text} is not a list of brokers: write 1,2,3") from error
