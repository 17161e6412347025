"""`strandline log`: shows the files of a partition, repairs them as recovery would, and finds offsets by time."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.arguments import offset
from strandline.cli.connection import add_connection, run
from strandline.cli.failures import fail
from strandline.cli.output.document import add_json

if TYPE_CHECKING:
    from strandline.client import Admin

_TIMESTAMP_MAX: Final = 2**63 - 1


def add_arguments(log: argparse.ArgumentParser) -> None:
    actions = log.add_subparsers(dest="action", required=True, metavar="ACTION")
    dump = actions.add_parser(
        "dump",
        help="print the contents of a partition's files",
        description="Prints batches, indexes, aborted transactions, producer snapshots and leader epochs.",
    )
    dump.add_argument("path", nargs="+", metavar="PATH", help="the directory of a partition, or a file in it")
    dump.add_argument("--records", action="store_true", help="print the records of each batch too")
    verify = actions.add_parser(
        "verify",
        help="check all files of a partition",
        description="Checks CRCs, offsets, the order of indexes, sequences of producers and leader epochs. Changes "
        "nothing. The exit code is 1 if something is wrong.",
    )
    verify.add_argument(
        "path",
        nargs="+",
        metavar="DIRECTORY",
        help="directories of partitions, or data directories to check all their partitions",
    )
    repair = actions.add_parser(
        "repair",
        help="repair files as a start after a crash would",
        description="Cuts a torn end that was never flushed, and rebuilds damaged indexes and leader epochs. Nothing "
        "below the recovery point is cut. The recovery point is in a checkpoint file in the data directory; "
        "without that file the command refuses, unless --recovery-point names the offset from which the log may "
        "be cut. The broker must be stopped. The exit code is 1 if damage is left.",
    )
    repair.add_argument("path", metavar="DIRECTORY", help="the directory of a partition")
    repair.add_argument(
        "--dry-run", action="store_true", help="change nothing: repair a copy, and say what was done to it"
    )
    repair.add_argument(
        "--recovery-point",
        type=offset,
        metavar="OFFSET",
        help="cut nothing below this offset; for a partition that was copied without its data directory",
    )
    repair.add_argument(
        "--drop-batch",
        type=offset,
        action="append",
        default=[],
        metavar="OFFSET",
        help="empty the batch that begins at this offset, if `verify` says that it cannot be read. Its records are "
        "lost, and its offsets stay unused. Do the same on other replicas. Repeat it for several batches",
    )
    repair.add_argument("--yes", action="store_true", help="drop batches without asking")
    scrub = actions.add_parser(
        "scrub",
        help="show the progress of the background check for damage",
        description="A broker reads its closed segments in the background and has damaged replicas replaced "
        "(strandline.log.scrub.* in its settings). This shows the progress from the state in the data directory. The "
        "exit code is 1 if the last pass found damage.",
    )
    scrub.add_argument("--status", action="store_true", required=True, help="print the state")
    scrub.add_argument("path", nargs="+", metavar="DATA", help="log directories of brokers")
    at = actions.add_parser(
        "at",
        help="show the offsets of all partitions at a time",
        description="Shows, for each partition, the offset of the first record at or after a time. If all records "
        "are older, it is the offset of the next record.",
    )
    at.add_argument("--time", required=True, help="2026-01-31T12:00:00Z, or milliseconds since 1970")
    at.add_argument(
        "--topic", action="append", metavar="TOPIC", help="show only this topic; repeat it for several"
    )
    add_connection(at)
    _add_shapes(dump, verify, repair, scrub, at)


def _add_shapes(
    dump: argparse.ArgumentParser,
    verify: argparse.ArgumentParser,
    repair: argparse.ArgumentParser,
    scrub: argparse.ArgumentParser,
    at: argparse.ArgumentParser,
) -> None:
    """Adds `--json` to each action."""
    add_json(
        dump,
        {"file": "text", "error?": "text", "records?": [{"<field>": "any"}], "<field>": "any"},
        lines=True,
    )
    findings = [{"severity": "text", "file": "text", "what": "text", "<field>": "any"}]
    add_json(verify, {"directory": "text", "errors": "number", "findings": findings}, lines=True)
    add_json(
        repair,
        {
            "directory": "text",
            "dry_run": "flag",
            "recovery_point": "number?",
            "done": ["text"],
            "left": ["text"],
        },
    )
    add_json(
        scrub, {"directory": "text", "damaged": "number", "findings": ["text"], "<field>": "any"}, lines=True
    )
    add_json(
        at, {"topic": "text", "partition": "number", "offset": "number", "timestamp": "number?"}, lines=True
    )


def call(options: argparse.Namespace) -> int:
    action = {"dump": _dump, "verify": _verify, "repair": _repair, "scrub": _scrub, "at": _at}[options.action]
    try:
        return action(options)
    except BrokenPipeError:
        raise  # not about a file
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}")


def _dump(options: argparse.Namespace) -> int:
    from strandline.node.disk import RealDisk
    from strandline.storage.dumping import can_dump, dump_file

    code = 0
    for path in _files(options.path):
        if not can_dump(path):
            if path in options.path:
                return fail(
                    f"{path} is not a file of a partition: a segment, an index, a snapshot or a checkpoint"
                )
            continue
        if not options.json:
            print(path)
        for row in dump_file(RealDisk(), path, with_records=options.records):
            code = 1 if "error" in row else code
            if options.json:
                print(json.dumps({"file": path, **row}))
            else:
                _print_row(row)
    return code


def _files(paths: list[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            yield from (os.path.join(path, name) for name in sorted(os.listdir(path)))
        else:
            os.stat(path)  # raises an error if the file does not exist
            yield path


def _print_row(row: dict[str, Any]) -> None:
    records = row.pop("records", [])
    print("  " + " ".join(f"{name}={_shown(value)}" for name, value in row.items()))
    for record in records:
        print("    " + " ".join(f"{name}={_shown(value)}" for name, value in record.items() if value != []))


def _shown(value: Any) -> str:
    return (
        json.dumps(value, ensure_ascii=False)
        if not isinstance(value, int) or isinstance(value, bool)
        else str(value)
    )


def _verify(options: argparse.Namespace) -> int:
    from strandline.node.disk import RealDisk
    from strandline.storage.verifying import ERROR, UnknownDirectory, verify

    errors = 0
    for directory in [each for path in options.path for each in _partitions_in(path)]:
        if not os.path.isdir(directory):
            return fail(
                f"{directory} is not a directory; name that of a partition, such as DATA/topic-0, or DATA for all"
            )
        try:
            findings = verify(RealDisk(), directory.rstrip("/"))
        except UnknownDirectory as error:
            return fail(str(error))
        wrong = sum(finding.severity == ERROR for finding in findings)
        errors += wrong
        if options.json:
            found = [asdict(finding) for finding in findings]
            print(json.dumps({"directory": directory, "errors": wrong, "findings": found}))
            continue
        for finding in findings:
            print(f"{finding.severity}: {finding.file}: {finding.what}")
        print(f"{directory}: {'sound' if not wrong else f'{wrong} errors'}")
    return 1 if errors else 0


def _partitions_in(path: str) -> list[str]:
    """Returns the partitions of a data directory; for any other path, only the path."""
    from strandline.storage.names import META_PROPERTIES, parse_partition_directory

    if not os.path.isfile(os.path.join(path, META_PROPERTIES)):
        return [path]
    names = [name for name in sorted(os.listdir(path)) if parse_partition_directory(name) is not None]
    return [os.path.join(path, name) for name in names] or [path]


def _repair(options: argparse.Namespace) -> int:
    from strandline.node.disk import RealDisk
    from strandline.storage import names
    from strandline.storage.checkpoints import MalformedCheckpoint
    from strandline.storage.repairing import CannotDrop, recovery_point

    directory = os.path.abspath(options.path)
    if names.parse_partition_directory(os.path.basename(directory)) is None or not os.path.isdir(directory):
        return fail(f"{options.path} is not the directory of a partition, such as DATA/topic-0")
    disk, data = RealDisk(), os.path.dirname(directory)
    lock = os.path.join(data, names.LOCK)
    if os.path.exists(lock) and not disk.lock(lock):
        return fail(f"{data} is in use by a broker; stop it first")
    if options.drop_batch and not (options.dry_run or options.yes):
        refused = _ask_to_drop(directory, options.drop_batch)
        if refused is not None:
            return fail(refused)
    try:
        flushed_to = options.recovery_point
        if flushed_to is None:
            flushed_to = recovery_point(disk, directory, data)
        if flushed_to is None:
            return _refuse_without_recovery_point(directory, data)
        notes, left = _repaired(directory, data, flushed_to, options.drop_batch, dry_run=options.dry_run)
    except CannotDrop as error:
        return fail(str(error))
    except MalformedCheckpoint as error:
        return fail(
            f"a checkpoint in {data} cannot be read: {error}. It says what was flushed: repair it, or give "
            "--recovery-point OFFSET, below which nothing is cut"
        )
    if options.json:
        found = {"directory": directory, "dry_run": options.dry_run, "recovery_point": flushed_to}
        print(json.dumps({**found, "done": notes, "left": left}))
        return 1 if left else 0
    for note in notes:
        print(note)
    for damage in left:
        print(f"left as it is: {damage}")
    _print_outcome(directory, notes, left, dry_run=options.dry_run)
    return 1 if left else 0


def _print_outcome(directory: str, notes: list[str], left: list[str], *, dry_run: bool) -> None:
    if notes:
        said = "would be repaired" if dry_run else "repaired"
    else:
        said = "would change nothing" if dry_run else "nothing to repair"
    if left:
        said += (
            f"; {len(left)} errors are left, because they are in flushed data: if other replicas have the records, "
            "start the broker, and it fetches them again when they are read"
        )
    print(f"{directory}: {said}")


def _ask_to_drop(directory: str, offsets: list[int]) -> str | None:
    """Shows the records that would be lost and asks for consent. Returns None to go on, otherwise the reason why
    nothing is dropped."""
    from strandline.node.disk import RealDisk
    from strandline.storage.repairing import CannotDrop, find_malformed

    try:
        for number in offsets:
            found = find_malformed(RealDisk(), directory, number)
            header = found.header
            print(
                f"the batch at offset {number} says to hold {header.record_count} records up to offset "
                f"{header.last_offset}, in {header.size} bytes: {found.fault}",
                file=sys.stderr,
            )
    except CannotDrop as error:
        return str(error)
    if not sys.stdin.isatty():
        return "nothing was dropped: add --yes to lose these records, or --dry-run to see what would be done"
    print("lose these records? type yes: ", end="", file=sys.stderr, flush=True)
    return None if sys.stdin.readline().strip() == "yes" else "nothing was dropped"


def _repaired(
    directory: str, data: str, flushed_to: int, dropped: list[int], *, dry_run: bool
) -> tuple[list[str], list[str]]:
    """Returns the repairs that were made, here or in a copy, and the damage that is left."""
    from strandline.node.disk import RealDisk
    from strandline.partition.producers import Producers
    from strandline.storage.repairing import drop_malformed, find_malformed, repair
    from strandline.storage.verifying import ERROR, verify

    disk, notes = RealDisk(), []
    with tempfile.TemporaryDirectory(prefix="strandline-repair-") as scratch:
        place = directory
        if dry_run:
            place = os.path.join(scratch, os.path.basename(directory))
            shutil.copytree(directory, place)
        for number in dropped:
            found = find_malformed(disk, place, number)
            drop_malformed(disk, place, found)
            notes.append(f"{place}: emptied the batch at offset {number}: {found.fault}")
        notes += repair(disk, place, data, flushed_to, Producers)
        left = [f"{each.file}: {each.what}" for each in verify(disk, place) if each.severity == ERROR]
    return [note.replace(place, directory) for note in notes], left


def _refuse_without_recovery_point(directory: str, data: str) -> int:
    """Raises an error with the part that a repair would cut, because no checkpoint says what was flushed."""
    from strandline.node.disk import RealDisk
    from strandline.partition.producers import Producers
    from strandline.storage.repairing import bytes_of_log, repair

    disk = RealDisk()
    with tempfile.TemporaryDirectory(prefix="strandline-repair-") as scratch:
        copy = os.path.join(scratch, os.path.basename(directory))
        shutil.copytree(directory, copy)
        before = bytes_of_log(disk, copy)
        repair(disk, copy, data, 0, Producers)
        cut = before - bytes_of_log(disk, copy)
    return fail(
        f"{data} has no checkpoint with the flushed offset of {os.path.basename(directory)}, and a repair could cut "
        f"{cut} of its {before} bytes. Repair it in its data directory, or copy recovery-point-offset-checkpoint "
        "beside it; or "
        "give --recovery-point OFFSET, below which nothing is cut (0 allows all of it)"
    )


def _scrub(options: argparse.Namespace) -> int:
    from strandline.node.disk import RealDisk
    from strandline.storage.directory import is_formatted
    from strandline.storage.scrubbing import load_state

    disk, code = RealDisk(), 0
    for directory in options.path:
        if not os.path.isdir(directory) or not is_formatted(disk, directory):
            return fail(
                f"{directory} is not the log directory of a broker; name one that has a meta.properties"
            )
        state = load_state(disk, directory.rstrip("/"))
        code = 1 if state.damaged else code
        if options.json:
            print(json.dumps({"directory": directory, **asdict(state)}))
            continue
        if not state.started_ms:
            print(f"{directory}: no broker has scrubbed it yet")
            continue
        where = f"at {state.next_partition}" if state.next_partition else "waiting for the next pass"
        print(
            f"{directory}: {where}; began {_time(state.started_ms)}, last whole pass {_time(state.finished_ms)}; "
            f"{state.segments} segments, {state.bytes_read} bytes, {state.damaged} damaged"
        )
        for finding in state.findings:
            print(f"  {finding}")
    return code


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds") if ms else "never"


def _at(options: argparse.Namespace) -> int:
    try:
        timestamp = _milliseconds(options.time)
    except ValueError:
        return fail(f"--time {options.time}: give 2026-01-31T12:00:00Z, or milliseconds since 1970")

    async def look(admin: Admin, options: argparse.Namespace) -> int:
        for row in await _offsets_at(admin, options, timestamp):
            if options.json:
                print(json.dumps(row))
            else:
                when = "the end" if row["timestamp"] is None else _iso(row["timestamp"])
                print(f"{row['topic']}-{row['partition']}  {row['offset']:>12}  {when}")
        return 0

    return run(options, look, "topics")


def _milliseconds(text: str) -> int:
    if text.isdigit():
        milliseconds = int(text)
    else:
        moment = datetime.fromisoformat(text)
        milliseconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if not 0 <= milliseconds <= _TIMESTAMP_MAX:  # to a broker, times below 0 have a meaning of their own
        raise ValueError(f"{text} is before 1970 or too far ahead")
    return milliseconds


def _iso(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):  # after the year 9999: the producer has sent microseconds
        return f"{milliseconds} ms"


async def _offsets_at(admin: Admin, options: argparse.Namespace, timestamp: int) -> list[dict[str, Any]]:
    from strandline.base.ids import TopicPartition
    from strandline.client.admin.topics import LATEST

    topics = options.topic or await admin.list_topics(timeout=options.timeout)
    described = await admin.describe_topics(topics, timeout=options.timeout)
    partitions = [
        TopicPartition(name, partition.partition)
        for name, topic in sorted(described.items())
        for partition in topic.partitions
    ]
    wanted = dict.fromkeys(partitions, timestamp)
    found = await admin.list_offsets(wanted, timeout=options.timeout)
    missing = {partition: LATEST for partition in partitions if found[partition].offset < 0}
    ends = await admin.list_offsets(missing, timeout=options.timeout) if missing else {}
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": ends[partition].offset if partition in ends else found[partition].offset,
            "timestamp": None if partition in ends else found[partition].timestamp_ms,
        }
        for partition in partitions
    ]
