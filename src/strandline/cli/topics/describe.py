"""`strandline topics describe`: partitions with their leaders, replicas and in-sync sets."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import coloured, count_of, show, size, table
from strandline.cli.topics.names import matching_topics
from strandline.cli.topics.observers import SETTING, bytes_behind, observers_of

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin
    from strandline.client.net.metadata import PartitionInfo, TopicInfo

    # The bytes that the observers of partitions lack.
    Behind = dict[TopicPartition, list[tuple[int, int | None]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows topics with their partitions: leader, replicas with the preferred leader first, in-sync set, racks. "
        "A note names the preferred leader if another replica leads (`strandline elect-leaders` changes that)."
    )
    parser.add_argument(
        "topic",
        nargs="*",
        metavar="TOPIC",
        help="the topics; * and ? stand for any characters (default: all topics)",
    )
    parser.add_argument(
        "--internal", action="store_true", help="show internal topics too, if no topic is named"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--under-replicated", action="store_true", help="show only partitions with replicas out of sync"
    )
    only.add_argument("--offline", action="store_true", help="show only partitions without a leader")
    only.add_argument(
        "--under-min-isr",
        action="store_true",
        help="show only partitions that refuse acks=all, because too few replicas are in sync",
    )
    only.add_argument(
        "--not-preferred",
        action="store_true",
        help="show only partitions whose leader is not the preferred one",
    )
    add_connection(parser)
    add_json(
        parser,
        {
            "topics": [
                {
                    "name": "text",
                    "topic_id": "text",
                    "internal": "flag",
                    "configs": {"<key>": "text?"},
                    "partitions": [
                        {
                            "partition": "number",
                            "leader": "number?",
                            "leader_epoch": "number",
                            "replicas": ["number"],
                            "in_sync": ["number"],
                            "offline": ["number"],
                            "racks": ["text?"],
                            "preferred": "flag",
                            "observers": [{"node": "number", "bytes_behind": "number?"}],
                        }
                    ],
                }
            ]
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _describe, "topics", "configs", "cluster")


async def _describe(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.base.ids import TopicPartition
    from strandline.client.admin.configs import ConfigResource

    if options.topic:
        names = await matching_topics(admin, options.topic)
    else:
        names = await admin.list_topics(include_internal=options.internal)
    topics = (await admin.describe_topics(names)) if names else {}
    resources = [ConfigResource.topic(name) for name in names]
    configs = await admin.describe_configs(resources) if names else {}
    racks = {node.node_id: node.rack for node in admin.brokers()}
    shown = []
    observed: dict[TopicPartition, list[int]] = {}
    for name in names:
        entries = configs[ConfigResource.topic(name)]
        minimum = int(entries["min.insync.replicas"].value or 1) if "min.insync.replicas" in entries else 1
        own = {key: entry.value for key, entry in sorted(entries.items()) if entry.source == 1}
        partitions = [each for each in topics[name].partitions if _is_wanted(each, minimum, options)]
        watching = observers_of(own.get(SETTING), racks)
        for each in partitions if watching else ():
            own_observers = [node for node in watching if node not in each.replicas]
            observed[TopicPartition(name, each.partition)] = own_observers
        if partitions or not _is_filtered(options):
            shown.append((topics[name], own, partitions))
    infos = {TopicPartition(each.topic, each.partition): each for _, _, own in shown for each in own}
    behind = await bytes_behind(admin, infos, observed) if observed else {}
    if options.json:
        print_json({"topics": [_document(*each, racks, behind) for each in shown]})
    elif shown:
        show([line for each in shown for line in [*_lines(*each, racks, behind), ""]][:-1])
    else:
        print("no such partitions" if _is_filtered(options) else "no topics")
    return DONE


def _is_filtered(options: argparse.Namespace) -> bool:
    return bool(options.under_replicated or options.offline or options.under_min_isr or options.not_preferred)


def _is_wanted(each: PartitionInfo, minimum: int, options: argparse.Namespace) -> bool:
    if options.under_replicated:
        return len(each.in_sync) < len(each.replicas)
    if options.offline:
        return each.leader_id < 0
    if options.under_min_isr:
        return len(each.in_sync) < min(minimum, len(each.replicas))
    if options.not_preferred:
        return not _is_preferred(each)
    return True


def _is_preferred(each: PartitionInfo) -> bool:
    return not each.replicas or each.leader_id == each.replicas[0]


def _document(
    topic: TopicInfo,
    configs: dict[str, str | None],
    partitions: list[PartitionInfo],
    racks: dict[int, str | None],
    behind: Behind,
) -> dict[str, Any]:
    from strandline.base.ids import uuid_text

    return {
        "name": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "configs": configs,
        "partitions": [
            {
                "partition": each.partition,
                "leader": each.leader_id if each.leader_id >= 0 else None,
                "leader_epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "in_sync": list(each.in_sync),
                "offline": list(each.offline),
                "racks": [racks.get(node) for node in each.replicas],
                "preferred": _is_preferred(each),
                "observers": [
                    {"node": node, "bytes_behind": lacking} for node, lacking in _observers(each, behind)
                ],
            }
            for each in partitions
        ],
    }


def _lines(
    topic: TopicInfo,
    configs: dict[str, str | None],
    partitions: list[PartitionInfo],
    racks: dict[int, str | None],
    behind: Behind,
) -> list[str]:
    from strandline.base.ids import uuid_text

    replicas = max((len(each.replicas) for each in topic.partitions), default=0)
    numbers = f"{count_of(len(topic.partitions), 'partition')}, {count_of(replicas, 'replica')} each"
    lines = [f"topic {coloured(topic.name, 'bold')}  {numbers}  id {uuid_text(topic.topic_id)}"]
    if configs:
        lines.append("  " + "  ".join(f"{key}={value}" for key, value in configs.items()))
    has_racks = any(racks.get(node) for each in partitions for node in each.replicas)
    head = ("PARTITION", "LEADER", "REPLICAS", "IN SYNC", *(["RACKS"] if has_racks else []), "NOTE")
    rows = [
        (
            each.partition,
            each.leader_id if each.leader_id >= 0 else "none",
            each.replicas,
            each.in_sync,
            *([[racks.get(node) or "-" for node in each.replicas]] if has_racks else []),
            _note(each, behind),
        )
        for each in partitions
    ]
    return lines + [f"  {line}" for line in table(head, rows)]


def _observers(each: PartitionInfo, behind: Behind) -> list[tuple[int, int | None]]:
    """Returns the observers of a partition, with the bytes that each lacks."""
    from strandline.base.ids import TopicPartition

    return behind.get(TopicPartition(each.topic, each.partition), [])


def _note(each: PartitionInfo, behind: Behind) -> str:
    if each.leader_id < 0:
        return "no leader"
    missing = [node for node in each.replicas if node not in each.in_sync]
    notes = [f"not in sync: {','.join(map(str, missing))}"] if missing else []
    if not _is_preferred(each):
        notes.append(f"preferred leader is {each.replicas[0]}")
    for node, lacking in _observers(each, behind):
        how_far = "" if not lacking else f", {size(lacking)} behind"
        notes.append(f"observer {node}{', unknown' if lacking is None else how_far}")
    return "; ".join(notes)
