"""`strandline mirror verify`: which records of the source have not arrived, and whether the others are the same."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.connection import run_async
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.mirror.files import add_action, flow_of
from strandline.cli.output.document import add_json
from strandline.cli.output.text import printable

if TYPE_CHECKING:
    from strandline.client.consumer.record_decoder import ConsumerRecord
    from strandline.mirror.operations.verify import PartitionFindings


_RECORD: Final = {"offset": "number", "timestamp_ms": "number", "key": "text?"}
SHAPE: Final = {
    "flow": "text",
    "partitions": [
        {
            "source": "text",
            "target": "text",
            "copied_to": "number",
            "compared": "number",
            "missing_count": "number",
            "different_count": "number",
            "is_gone": "flag",
            "missing": [_RECORD],
            "different": [_RECORD],
        }
    ],
}


def add_parser(actions: Any) -> None:
    parser = add_action(
        actions,
        "verify",
        "which records of the source have not arrived",
        "Lists the records of the source that have not arrived: after a failover those that had not arrived then. With "
        "--contents every copy is compared with its record. The exit code is 1 if a record is missing or different, or "
        "if the source does not have a topic any more.",
    )
    parser.add_argument("--contents", action="store_true", help="compare every copy with its record")
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    flow = flow_of(options)

    async def work() -> int:
        from strandline.mirror.operations.control import MirrorControl
        from strandline.mirror.operations.verify import verify

        async with MirrorControl(flow) as control:
            findings = await verify(control, with_contents=options.contents)
        if options.json:
            print(json.dumps({"flow": flow.name, "partitions": [_document(each) for each in findings]}))
        else:
            print("\n".join(line for each in findings for line in _lines(each)))
        is_whole = not any(each.missing_count or each.different_count or each.is_gone for each in findings)
        return DONE if is_whole else FAILED

    return run_async(work)


def _document(found: PartitionFindings) -> dict[str, Any]:
    return {
        "source": str(found.source),
        "target": str(found.target),
        "copied_to": found.copied_to,
        "compared": found.compared,
        "missing_count": found.missing_count,
        "different_count": found.different_count,
        "is_gone": found.is_gone,
        "missing": [_record(each) for each in found.missing],
        "different": [_record(each) for each in found.different],
    }


def _record(record: ConsumerRecord) -> dict[str, Any]:
    key = None if record.key is None else record.key.decode(errors="replace")
    return {"offset": record.offset, "timestamp_ms": record.timestamp, "key": key}


def _lines(found: PartitionFindings) -> list[str]:
    if found.is_gone:
        return [f"{found.source}: the source does not have the topic any more; {found.target} keeps its copy"]
    compared = (
        f", {found.compared} copies compared, {found.different_count} different" if found.compared else ""
    )
    lines = [f"{found.source}: {found.missing_count} records have not arrived{compared}"]
    lines += [f"  not arrived: {record_text(each)}" for each in found.missing]
    lines += [f"  different: {record_text(each)}" for each in found.different]
    listed = len(found.missing) + len(found.different)
    if listed < found.missing_count + found.different_count:
        lines.append(f"  and {found.missing_count + found.different_count - listed} more")
    return lines


def record_text(record: ConsumerRecord) -> str:
    """Returns a record as a line of a list."""
    key = "no key" if record.key is None else f"key {printable(record.key.decode(errors='replace'))}"
    return f"offset {record.offset}, timestamp {record.timestamp}, {key}"
