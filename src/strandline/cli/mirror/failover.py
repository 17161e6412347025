"""`strandline mirror failover`: groups go on at the target, with a proof of what had arrived."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.connection import run_async
from strandline.cli.exit_codes import DONE
from strandline.cli.mirror.files import add_action, flow_of
from strandline.cli.output.document import add_json
from strandline.cli.output.text import moment

if TYPE_CHECKING:
    from strandline.mirror.operations.failover import FailoverProof


SHAPE: Final = {
    "flow": "text",
    "time_ms": "number",
    "offsets_are_from": "text",
    "offsets_ms": "number",
    "partitions": [
        {
            "source_topic": "text",
            "target_topic": "text",
            "partition": "number",
            "topic_id": "text",
            "copied_to": "number",
            "target_end": "number",
        }
    ],
    "groups": [
        {
            "group": "text",
            "target_topic": "text",
            "partition": "number",
            "source_offset": "number",
            "target_offset": "number",
            "note": "text",
            "source_ms": "number",
        }
    ],
}


def add_parser(actions: Any) -> None:
    parser = add_action(
        actions,
        "failover",
        "have groups go on at the target",
        "Pauses a flow and ends what its processes have under way, commits the translated offsets of the source's "
        "groups at the target, and writes down per partition what had arrived. The source need not be there.",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    flow = flow_of(options)

    async def work() -> int:
        from strandline.mirror.operations.control import MirrorControl
        from strandline.mirror.operations.failover import fail_over

        async with MirrorControl(flow) as control:
            proof = await fail_over(control, dry_run=options.dry_run)
        if options.json:
            print(json.dumps(asdict(proof)))
        else:
            is_heartbeats = flow.policy.is_heartbeats_topic
            print("\n".join(_lines(proof, is_heartbeats, is_dry_run=options.dry_run)))
        return DONE

    return run_async(work)


def _lines(proof: FailoverProof, is_heartbeats: Callable[[str], bool], *, is_dry_run: bool) -> list[str]:
    lines = [
        f"{proof.flow}: what would be done" if is_dry_run else f"{proof.flow} has failed over and is paused"
    ]
    lines.append("arrived:")
    lines += [
        f"  {each.target_topic}-{each.partition}: everything before offset {each.copied_to} of "
        f"{each.source_topic}-{each.partition}, nothing after it; its end is {each.target_end}"
        for each in proof.partitions
        if not is_heartbeats(each.source_topic)
    ]
    if proof.offsets_are_from == "source":
        lines.append("groups, with the offsets that the source has now:")
    elif not proof.groups:
        lines.append("groups: the source does not respond, and there are no checkpoints")
    else:
        lines.append(
            "groups, with their last checkpoints: what they committed later at the source is read again"
        )
    for each in proof.groups:
        done = each.note or ("would be committed" if is_dry_run else "committed")
        time = "" if proof.offsets_are_from == "source" else f", checkpoint of {moment(each.source_ms)}"
        lines.append(
            f"  {each.group}: {each.target_topic}-{each.partition} at {each.target_offset} "
            f"({each.source_offset} at the source{time}): {done}"
        )
    lines.append("when the source is back, `strandline mirror verify` lists the records that had not arrived")
    return lines
