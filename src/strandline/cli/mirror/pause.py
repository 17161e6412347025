"""`strandline mirror pause`: has all processes of a flow copy nothing until it is resumed."""

from __future__ import annotations

import argparse
from typing import Any

from strandline.cli.connection import run_async
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import say_error
from strandline.cli.mirror.files import add_action, flow_of


def add_parser(actions: Any) -> None:
    parser = add_action(
        actions,
        "pause",
        "copy nothing until it is resumed",
        "Has all processes of a flow copy nothing until `mirror resume`, also those that are started later.",
    )
    parser.add_argument("--reason", default="", help="why, for those who look at its status")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def call(options: argparse.Namespace) -> int:
    return change(options, paused=True, reason=options.reason)


def change(options: argparse.Namespace, *, paused: bool, reason: str) -> int:
    """Pauses or resumes a flow, and says so."""
    flow = flow_of(options)
    word = "paused" if paused else "resumed"

    async def work() -> int:
        from strandline.mirror.operations.control import MirrorControl

        async with MirrorControl(flow) as control:
            state = await control.journal()
            if state.is_paused == paused:
                print(f"{flow.name} is {word} already" if paused else f"{flow.name} is not paused")
                return DONE
            if not paused and state.failover is not None:
                say_error(
                    f"{flow.name} has failed over: nothing was done; `strandline mirror failback` compares both ends "
                    "and goes on"
                )
                return FAILED
            if options.dry_run:
                print(f"{flow.name} would be {word}")
                return DONE
            await control.set_paused(paused, reason)
        print(f"{flow.name} is {word}")
        return DONE

    return run_async(work)
