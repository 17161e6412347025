"""`strandline mirror failback`: the old source gets what the target took since the failover."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.connection import run_async
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import say_error
from strandline.cli.mirror.files import add_action, flow_of
from strandline.cli.mirror.verify import record_text

if TYPE_CHECKING:
    from strandline.client.consumer.record_decoder import ConsumerRecord
    from strandline.mirror.operations.failback import FailbackPartition

_LISTED_MAX: Final = 1000


def add_parser(actions: Any) -> None:
    parser = add_action(
        actions,
        "failback",
        "give the old source what it missed, and go on",
        "Lists what the old source took on its own since the failover and what the target took, copies what is "
        "missing, moves groups back and resumes the flow. Stop the producers of both ends and the mirror first. Where "
        "both ends of a partition took records nothing is done, unless --accept-divergence says so.",
    )
    parser.add_argument("--dry-run", action="store_true", help="only list")
    parser.add_argument(
        "--accept-divergence",
        action="store_true",
        help="copy both ways where both took records: each end then has them in another order",
    )


def call(options: argparse.Namespace) -> int:
    flow = flow_of(options)

    async def work() -> int:
        from strandline.mirror.operations.control import MirrorControl
        from strandline.mirror.operations.failback import fail_back, plan_failback

        async with MirrorControl(flow) as control:
            partitions = await plan_failback(control)
            print("\n".join(_lines(partitions, flow.source.alias, flow.target.alias)))
            if options.dry_run:
                return DONE
            if any(each.is_divergent for each in partitions) and not options.accept_divergence:
                say_error(
                    "both ends took records: nothing was done; look at them, then use --accept-divergence to have both "
                    "at both ends"
                )
                return FAILED
            done = await fail_back(control, partitions)
        print(
            f"{done['back']} records copied back, {done['forward']} copied forward, {done['groups']} groups moved "
            f"back; {flow.name} is resumed"
        )
        return DONE

    return run_async(work)


def _lines(partitions: list[FailbackPartition], source: str, target: str) -> list[str]:
    lines = [f"taken by {source} on its own, never arrived at {target}:"]
    for each in partitions:
        lines += _records(str(each.source), each.source_own)
    lines.append(f"taken by {target} since the failover:")
    for each in partitions:
        lines += _records(str(each.target), each.target_own)
    return lines


def _records(where: str, records: tuple[ConsumerRecord, ...]) -> list[str]:
    lines = [f"  {where}: {len(records)} records"]
    lines += [f"    {record_text(each)}" for each in records[:_LISTED_MAX]]
    if len(records) > _LISTED_MAX:
        lines.append(f"    and {len(records) - _LISTED_MAX} more")
    return lines
