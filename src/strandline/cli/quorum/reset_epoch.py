"""`strandline quorum reset-epoch`: lowers the epochs of a quorum after a forged request has used them up."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.exit_codes import DONE, FAILED, USAGE
from strandline.cli.failures import fail
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json

if TYPE_CHECKING:
    from strandline.broker.metadata.epoch_reset import EpochReset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lowers the epochs of a metadata quorum that has no epoch left for its next election. All nodes of the cluster "
        "must be stopped, and the command must run on the data directory of each of them before any is started."
    )
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help="the data directories of stopped nodes that have the metadata log",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and only say what would change"
    )
    add_yes(parser)
    add_json(parser, {"data": "text", "old_epoch": "number", "new_epoch": "number", "batches": "number"})


def call(options: argparse.Namespace) -> int:
    from strandline.broker.metadata.epoch_reset import CannotReset, plan_reset, reset
    from strandline.node.disk import RealDisk
    from strandline.storage.directory import UnusableDirectory, take_lock
    from strandline.storage.names import LOCK

    disk = RealDisk()
    locked: list[str] = []
    try:
        for data in options.data:
            plan_reset(
                disk, data
            )  # this refuses a directory without a metadata log before a lock file is created there
            take_lock(disk, data)
            locked.append(data)
        plans = {data: plan_reset(disk, data) for data in options.data}
        needed = {
            data: plan for data, plan in plans.items() if plan.old_epoch != plan.new_epoch or plan.batches
        }
        if needed and not options.dry_run:
            names = ", ".join(needed)
            question = (
                f"Lower the epochs in {names}? Every node of the cluster must be stopped and needs this."
            )
            if not confirmed(options, question):
                return FAILED
            for data in needed:
                reset(disk, data)
    except (CannotReset, UnusableDirectory) as error:
        fail(str(error))
        return USAGE
    finally:
        for data in locked:
            disk.unlock(f"{data}/{LOCK}")
    for data, plan in plans.items():
        _show(options, data, plan)
    return DONE


def _show(options: argparse.Namespace, data: str, plan: EpochReset) -> None:
    if options.json:
        print_json({"data": data, **plan._asdict()})
    elif plan.old_epoch == plan.new_epoch and not plan.batches:
        print(f"{data}: epoch {plan.old_epoch} leaves room for elections; nothing to do")
    else:
        verb = "would go" if options.dry_run else "went"
        print(
            f"{data}: the epoch {verb} from {plan.old_epoch} to {plan.new_epoch}, in {plan.batches} batches too"
        )
