"""`strandline groups reset-offsets`: moves committed offsets in all modes of Kafka's tool, and shows the new offsets
first. As in Kafka, an offset outside the log becomes the nearest end of it, and a time after the last record means the
end.
"""

from __future__ import annotations

import argparse
import csv
from typing import TYPE_CHECKING

from strandline.cli.arguments import duration_ms, offset, timestamp_ms
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import CommandError, not_found, usage
from strandline.cli.groups.scope import add_scope, partitions_in_scope
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of, show, table
from strandline.cli.permissions import check_group_is_visible

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin
    from strandline.client.admin.groups import CommittedOffset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Moves the committed offsets of a group, and shows the new offsets first. A group with members is refused, "
        "because they would continue from their present positions. A group that does not exist is created by --to-… "
        "with --topic."
    )
    parser.add_argument("group", metavar="GROUP", help="the group")
    add_scope(parser)
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="move to the first record")
    to.add_argument("--to-latest", action="store_true", help="move to the end")
    to.add_argument("--to-offset", type=offset, metavar="OFFSET", help="move to this offset")
    to.add_argument(
        "--to-datetime",
        type=timestamp_ms,
        metavar="TIME",
        help="move to the first record at or after this time",
    )
    to.add_argument(
        "--by-duration",
        type=duration_ms,
        metavar="DURATION",
        help="move to the time that is this long ago: 2h, 7d, P1DT2H",
    )
    to.add_argument(
        "--shift-by",
        type=int,
        metavar="COUNT",
        help="move forward by this number of offsets, or back with a minus: --shift-by=-100",
    )
    to.add_argument(
        "--to-current",
        action="store_true",
        help="keep the committed offset, or take the end if there is none",
    )
    to.add_argument(
        "--from-file", metavar="CSV", help="read lines of topic,partition,offset, as --export writes them"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and only show the new offsets"
    )
    parser.add_argument(
        "--export", action="store_true", help="print the new offsets as CSV, and change nothing"
    )
    add_yes(parser)
    add_connection(parser)
    add_json(
        parser,
        {
            "group": "text",
            "dry_run": "flag",
            "partitions": [{"topic": "text", "partition": "number", "before": "number?", "after": "number"}],
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _reset, "groups", "topics")


async def _reset(admin: Admin, options: argparse.Namespace) -> int:
    is_dry_run = options.dry_run or options.export
    known = {each.group_id for each in await admin.list_groups()}
    if options.group in known:
        (group,) = (await admin.describe_groups([options.group])).values()
        if group.members and not is_dry_run:
            raise CommandError(
                f"group {options.group} has {count_of(len(group.members), 'member')} (state {group.state}): stop "
                "them first, because they would continue from their present positions"
            )
    committed = await admin.list_group_offsets(options.group) if options.group in known else {}
    if options.from_file is not None:
        wanted = _read_csv(options.from_file, options.group)
        after = await _clamped(admin, wanted)
    else:
        if not options.topic and not committed:
            await check_group_is_visible(admin, options.group)
            raise not_found(f"there is no group {options.group} with offsets; name its topics with --topic")
        partitions = await partitions_in_scope(admin, options, list(committed))
        after = await _new_offsets(admin, options, partitions, committed)
    rows = [
        (each.topic, each.partition, committed[each].offset if each in committed else None, at)
        for each, at in sorted(after.items())
    ]
    if options.export:
        for topic, partition, _, at in rows:
            print(f'"{topic}",{partition},{at}')
        return DONE
    if not options.json:
        show(table(("TOPIC", "PARTITION", "BEFORE", "AFTER"), rows))
    if not is_dry_run:
        if not confirmed(options, f"Commit these {len(rows)} offsets for group {options.group}?"):
            return FAILED
        await admin.alter_group_offsets(options.group, after)
    if options.json:
        keys = ("topic", "partition", "before", "after")
        partitions_document = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json({"group": options.group, "dry_run": is_dry_run, "partitions": partitions_document})
    elif is_dry_run:
        print("nothing was changed (dry run)")
    else:
        print(f"{count_of(len(rows), 'offset')} committed for group {options.group}")
    return DONE


async def _new_offsets(
    admin: Admin,
    options: argparse.Namespace,
    partitions: list[TopicPartition],
    committed: dict[TopicPartition, CommittedOffset],
) -> dict[TopicPartition, int]:
    import time

    from strandline.client.admin.topics import EARLIEST, LATEST

    async def listed(at: int) -> dict[TopicPartition, int]:
        found = await admin.list_offsets(dict.fromkeys(partitions, at))
        return {each: one.offset for each, one in found.items()}

    if options.to_earliest:
        return await listed(EARLIEST)
    ends = await listed(LATEST)
    if options.to_latest:
        return ends
    if options.to_datetime is not None or options.by_duration is not None:
        now_ms = round(time.time() * 1000)
        at_ms = options.to_datetime if options.to_datetime is not None else now_ms - options.by_duration
        return {each: at if at >= 0 else ends[each] for each, at in (await listed(max(at_ms, 0))).items()}
    if options.to_offset is not None:
        return await _clamped(admin, dict.fromkeys(partitions, options.to_offset))
    current = {each: committed[each].offset if each in committed else ends[each] for each in partitions}
    if options.to_current:
        return current
    missing = [each for each in partitions if each not in committed]
    if missing:
        raise usage(
            f"--shift-by: {missing[0]} has no committed offset; use another mode, or leave it out with --topic"
        )
    return await _clamped(admin, {each: at + options.shift_by for each, at in current.items()})


async def _clamped(admin: Admin, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Returns the offsets; an offset outside its log is moved to the nearest end."""
    from strandline.client.admin.topics import EARLIEST, LATEST

    low = await admin.list_offsets(dict.fromkeys(wanted, EARLIEST))
    high = await admin.list_offsets(dict.fromkeys(wanted, LATEST))
    return {each: min(max(at, low[each].offset), high[each].offset) for each, at in wanted.items()}


def _read_csv(path: str, group_id: str) -> dict[TopicPartition, int]:
    from strandline.base.ids import TopicPartition

    found: dict[TopicPartition, int] = {}
    line = 0
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                line += 1
                if not row:
                    continue
                if len(row) == 4:
                    if row[0] != group_id:
                        continue
                    row = row[1:]
                topic, partition, at = row
                found[TopicPartition(topic, int(partition))] = int(at)
    except OSError as error:
        raise usage(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise usage(f"{path}, line {line}: write it as topic,partition,offset") from error
    if not found:
        raise usage(f"{path} has no offsets for group {group_id}")
    return found
