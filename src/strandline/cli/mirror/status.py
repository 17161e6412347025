"""`strandline mirror status`: how far a flow is, who works on it, and what went wrong."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.connection import run_async
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.mirror.files import add_action, flow_of
from strandline.cli.output.document import add_json

if TYPE_CHECKING:
    from strandline.mirror.operations.control import FlowStatus

_EVENTS_SHOWN: Final = 10
SHAPE: Final = {
    "flow": "text",
    "paused": "flag",
    "pause_reason": "text",
    "source_error": "text?",
    "members": [{"instance": "text", "host": "text"}],
    "partitions": [
        {
            "source": "text",
            "target": "text",
            "copied_to": "number",
            "source_end": "number?",
            "lag": "number?",
            "target_end": "number",
        }
    ],
    "events": [
        {
            "kind": "text",
            "where": "text",
            "text": "text",
            "time_ms": "number",
            "first_offset": "number",
            "offset_count": "number",
        }
    ],
}


def add_parser(actions: Any) -> None:
    parser = add_action(
        actions,
        "status",
        "how far a flow is, and what went wrong",
        "Shows how far each partition of a flow is copied, the processes that share the work, and the last events. The "
        "exit code is 1 if the source cannot be reached.",
    )
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    flow = flow_of(options)

    async def work() -> int:
        from strandline.mirror.operations.control import MirrorControl

        async with MirrorControl(flow) as control:
            status = await control.status()
        if options.json:
            print(json.dumps(_document(status)))
        else:
            print("\n".join(_lines(status)))
        return DONE if status.source_error is None else FAILED

    return run_async(work)


def _document(status: FlowStatus) -> dict[str, Any]:
    return {
        "flow": status.flow,
        "paused": status.journal.is_paused,
        "pause_reason": status.journal.pause_reason,
        "source_error": status.source_error,
        "members": [{"instance": each.instance_id or "", "host": each.host} for each in status.members],
        "partitions": [
            {
                "source": str(each.source),
                "target": str(each.target),
                "copied_to": each.copied_to,
                "source_end": each.source_end,
                "lag": each.lag,
                "target_end": each.target_end,
            }
            for each in status.partitions
        ],
        "events": [event._asdict() for event in status.journal.events],
    }


def _lines(status: FlowStatus) -> list[str]:
    journal = status.journal
    state = f"paused ({journal.pause_reason or 'no reason given'})" if journal.is_paused else "running"
    if not status.members and not journal.is_paused:
        state = "not running: no process is a member of its group"
    lines = [f"{status.flow}: {state}"]
    if status.source_error is not None:
        lines.append(f"the source cannot be reached: {status.source_error}")
    lines += [f"  process {each.instance_id} at {each.host}" for each in status.members]
    width = max([len("TARGET"), *(len(str(each.target)) for each in status.partitions)])
    lines.append(f"{'TARGET':<{width}}  {'COPIED TO':>12} {'SOURCE END':>12} {'LAG':>10}")
    for each in status.partitions:
        end, lag = ("?" if value is None else value for value in (each.source_end, each.lag))
        lines.append(f"{each.target!s:<{width}}  {each.copied_to:>12} {end:>12} {lag:>10}")
    if journal.events:
        lines.append(f"the last of {len(journal.events)} events:")
        lines += [f"  {event.where}: {event.text}" for event in journal.events[-_EVENTS_SHOWN:]]
    return lines
