"""`strandline lag`: shows the lag of consumer groups, once or again and again. Offsets come from the brokers, of
Strandline or Apache Kafka, by `Admin.group_lag`. Status, trend and seconds are computed in `lag/watch.py` and
`telemetry/lag.py`.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.arguments import seconds
from strandline.cli.connection import CONNECT_SECONDS_MAX, add_connection, settings_of
from strandline.cli.exit_codes import FAILED, NOT_FOUND
from strandline.cli.failures import exit_code_of, say_error
from strandline.cli.output.document import add_json
from strandline.cli.permissions import name_missing_operation

if TYPE_CHECKING:
    from strandline.client.sync import Admin

SHAPE: Final = {
    "time_ms": "number",
    "groups": [
        {
            "group": "text",
            "status": "text",
            "lag": "number",
            "seconds": "number?",
            "seconds_are_estimated": "flag",
            "trend": "number",
            "members": "number",
            "state": "text",
            "coordinator": "number",
            "partitions": [
                {
                    "topic": "text",
                    "partition": "number",
                    "committed_offset": "number",
                    "end_offset": "number",
                    "lag": "number",
                    "seconds": "number?",
                    "status": "text",
                    "member_id": "text",
                    "client_id": "text",
                    "host": "text",
                }
            ],
        }
    ],
}
_CLEAR: Final = "\x1b[2J\x1b[H"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows how many records each consumer group has still to read. The exit code is 1 if a group is in error: its "
        "lag is above --critical, or with --watch one of its partitions makes no progress."
    )
    parser.add_argument(
        "groups",
        nargs="*",
        metavar="GROUP",
        help="the groups to show, with their partitions (default: all groups, without partitions)",
    )
    parser.add_argument("--partitions", action="store_true", help="show the partitions of every group")
    parser.add_argument("--watch", action="store_true", help="repeat until Ctrl-C")
    parser.add_argument(
        "--interval",
        type=seconds,
        default=10.0,
        metavar="SECONDS",
        help="the time between two measurements with --watch (default: 10)",
    )
    parser.add_argument(
        "--looks",
        type=int,
        default=0,
        metavar="N",
        help="with --watch, end after this number of measurements",
    )
    parser.add_argument(
        "--warning",
        type=int,
        default=1_000,
        metavar="LAG",
        help="a group with a larger lag is WARN (default: 1000)",
    )
    parser.add_argument(
        "--critical",
        type=int,
        default=10_000,
        metavar="LAG",
        help="a group with a larger lag is ERR (default: 10000)",
    )
    parser.add_argument(
        "--rising",
        type=seconds,
        default=300.0,
        metavar="SECONDS",
        help="a partition whose lag rises for this time is WARN (default: 300)",
    )
    parser.add_argument(
        "--stopped",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="a partition without a commit for this time is STOP (default: 60)",
    )
    parser.add_argument(
        "--command",
        dest="notify_command",
        metavar="COMMAND",
        help="with --watch, run this by the shell when a group's status changes, with the change as JSON on its "
        "stdin",
    )
    parser.add_argument(
        "--webhook", metavar="URL", help="with --watch, POST the change as JSON when a group's status changes"
    )
    add_connection(parser)
    add_json(parser, SHAPE, lines=True)


def call(options: argparse.Namespace) -> int:
    from strandline.cli.lag.watch import LagWatch
    from strandline.client.errors import KafkaError
    from strandline.client.sync import Admin
    from strandline.telemetry.lag import LagRules

    rules = LagRules(
        warning=options.warning, critical=options.critical, rising_s=options.rising, stop_s=options.stopped
    )
    watch = LagWatch(rules, options.notify_command, options.webhook)
    logging.getLogger("strandline").addHandler(logging.NullHandler())  # errors are reported once, here
    try:
        settings = settings_of(options)
        if not options.watch:  # with --watch the command waits for a cluster that is being started
            settings.setdefault(
                "default.api.timeout.ms", str(round(min(options.timeout, CONNECT_SECONDS_MAX) * 1000))
            )
        with Admin(settings) as admin:
            return _look_on(admin, watch, options)
    except KafkaError as error:
        name_missing_operation(options, error)
        say_error(error)
        return exit_code_of(error)
    except ValueError as error:
        say_error(error)
        return FAILED


def _check_visible(admin: Admin, groups: list[str]) -> None:
    """Raises AuthorizationError if the user may not know whether one of these groups exists."""
    from strandline.client.errors import AuthorizationError, KafkaError

    for group in groups:
        try:
            admin.describe_groups([group])
        except AuthorizationError:
            raise
        except KafkaError:
            continue  # the caller says that there is no such group


def _look_on(admin: Admin, watch: Any, options: argparse.Namespace) -> int:
    from strandline.client.errors import KafkaError

    looks = 0
    while True:
        looks += 1
        try:
            found = admin.group_lag(options.groups or None, timeout=options.timeout)
        except KafkaError as error:
            if not options.watch:
                raise
            print(f"strandline: {error}", file=sys.stderr)  # a broker may be back at the next measurement
        else:
            if not options.watch and (absent := sorted(set(options.groups) - set(found))):
                _check_visible(admin, absent)
                print(f"strandline: there is no group {', '.join(absent)}", file=sys.stderr)
                return NOT_FOUND
            report = watch.look(found, int(time.time() * 1000))
            _show(report, options, is_first=looks == 1)
            if not options.watch or looks == options.looks:
                return FAILED if any(group["status"] == "ERR" for group in report["groups"]) else 0
        time.sleep(options.interval)


def _show(report: dict[str, Any], options: argparse.Namespace, *, is_first: bool) -> None:
    if options.json:
        print(json.dumps(report), flush=True)
        return
    lines = table(report["groups"], shows_partitions=options.partitions or bool(options.groups))
    if options.watch and sys.stdout.isatty():
        print(_CLEAR, end="")
    elif options.watch and not is_first:
        print()
    print("\n".join(lines), flush=True)


def table(groups: list[dict[str, Any]], *, shows_partitions: bool) -> list[str]:
    if not groups:
        return ["no group has committed anything"]
    width = max(len("GROUP"), *(len(group["group"]) for group in groups))
    lines = [
        f"{'GROUP':<{width}}  {'STATUS':<6} {'LAG':>12} {'SECONDS':>9} {'GROWS/S':>9} {'MEMBERS':>7}  STATE"
    ]
    for group in groups:
        lines.append(
            f"{group['group']:<{width}}  {group['status']:<6} {group['lag']:>12} {_seconds(group['seconds']):>9} "
            f"{group['trend']:>9.1f} {group['members']:>7}  {group['state']}"
        )
        for each in group["partitions"] if shows_partitions else ():
            name = f"{each['topic']}-{each['partition']}"
            lag = "?" if each["lag"] < 0 else each["lag"]
            owner = f"{each['client_id']} {each['host']}".strip() or "nobody"
            lines.append(
                f"{'  ' + name:<{width}}  {each['status']:<6} {lag:>12} {_seconds(each['seconds']):>9} "
                f"{'':>9} {'':>7}  at {each['committed_offset']} of {each['end_offset']}, {owner}"
            )
    return lines


def _seconds(value: float | None) -> str:
    """Returns the seconds as text, marked as an estimate."""
    return "-" if value is None else "0" if value == 0 else f"~{value:.0f}"
