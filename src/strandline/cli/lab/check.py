"""`strandline lab check`: plays failures against settings, and says what they lose and what to change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import coloured
from strandline.cli.presets import add_preset, preset_of

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.lab.check.check import CheckReport, PlayedFailure
    from strandline.lab.check.settings import CheckedSettings

_PARTS: Final = ("producer", "consumer", "topic", "cluster")
_SETTINGS: Final = {"<setting>": "text"}
_FINDING: Final = {
    "kind": "text",
    "records": "number",
    "seconds": "number",
    "error": "text?",
    "text": "text",
}
SHAPE: Final = {
    "settings": dict.fromkeys(_PARTS, _SETTINGS),
    "notes": ["text"],
    "survives_single_failures": "flag",
    "failures": [
        {
            "failure": "text",
            "title": "text",
            "is_several": "flag",
            "findings": [_FINDING],
            "advice": [{"kind": "text", "changes": {"<part>": _SETTINGS}, "text": "text"}],
        }
    ],
    "checklist": [{"point": "text", "verdict": "text", "text": "text"}],
}
_COLOURS: Final = {"good": "green", "change": "yellow", "yours": "bold"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plays failures in simulated time, on the real code, with the settings that are given, and says which of them "
        "lose acknowledged records, write or read them twice, skip or refuse them, or make somebody wait, for how "
        "long, and which change of settings was seen to help. Settings that are not given have Kafka's defaults, and "
        "a topic three replicas. With --bootstrap-server, --topic NAME is a topic of that cluster, which tells its own "
        "settings and the cluster's. "
        "Exits with 1 if a single failure loses, duplicates, reorders or skips records, with 2 if the settings are "
        "impossible."
    )
    for part in _PARTS:
        also = ", or with --bootstrap-server the NAME of a topic" if part == "topic" else ""
        parser.add_argument(
            f"--{part}",
            nargs="+",
            action="extend",
            default=[],
            metavar="SETTING",
            help=f"settings of the {part}: KEY=VALUE, or a .properties file{also}",
        )
    add_preset(parser, "settings of clients, topic and cluster that belong together")
    add_connection(parser)
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    preset = preset_of(options)
    given = {
        part: {**({} if preset is None else preset.part(part)), **_read(part, getattr(options, part))}
        for part in _PARTS
        if part != "topic" or not _is_live(options)
    }
    if not any(given.values()) and not _is_live(options):
        raise usage(
            "say which settings: --producer, --consumer, --topic or --cluster with KEY=VALUE or a file, --preset, or "
            "--bootstrap-server with --topic NAME"
        )
    if _is_live(options):
        return _check_live(options, given)
    from strandline.lab.check.settings import CheckedSettings

    settings = CheckedSettings(
        producer=given["producer"], consumer=given["consumer"], topic=given["topic"], cluster=given["cluster"]
    )
    return _check(settings, options)


def _is_live(options: argparse.Namespace) -> bool:
    return options.bootstrap_server is not None or options.context is not None


def _read(part: str, given: list[str]) -> dict[str, str]:
    from strandline.cli.given_settings import read_settings

    settings: dict[str, str] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if equals:
            settings[key.strip()] = value.strip()
            continue
        try:
            settings |= read_settings(each)
        except ValueError as error:
            raise usage(f"--{part} {each}: {error}; write settings as KEY=VALUE") from None
    return settings


def _check_live(options: argparse.Namespace, given: dict[str, dict[str, str]]) -> int:
    from strandline.lab.check.live import read_live

    if len(options.topic) != 1 or "=" in options.topic[0] or options.cluster:
        raise usage("with --bootstrap-server the cluster tells its settings: say only --topic NAME")
    found: list[CheckedSettings] = []

    async def read(admin: Admin, options: argparse.Namespace) -> int:
        found.append(await read_live(admin, options.topic[0], given["producer"], given["consumer"]))
        return DONE

    code = run(options, read, "topics", "configs", "cluster")
    return _check(found[0], options) if found else code


def _check(settings: CheckedSettings, options: argparse.Namespace) -> int:
    from strandline.lab.check.check import check
    from strandline.lab.check.settings import ImpossibleSettings, checked

    try:
        possible = checked(settings)
    except ImpossibleSettings as error:
        raise usage(str(error)) from None
    if options.json:
        report = check(possible)
        print_json(report.as_json())
    else:
        print("\n".join(_head(possible)), flush=True)
        report = check(possible, _print_played)
        print("\n".join(_tail(report)))
    return FAILED if report.is_harmful else DONE


def _head(settings: CheckedSettings) -> list[str]:
    lines = [f"note: {each}" for each in settings.notes]
    return [
        *lines,
        (
            f"acks={settings.acks}, replication.factor={settings.replication_factor}, "
            f"min.insync.replicas={settings.min_isr}, {settings.simulated_brokers} brokers"
        ),
        "",
    ]


def _print_played(played: PlayedFailure) -> None:
    several = " (several things fail)" if played.failure.is_several else ""
    colour = "red" if played.is_harmful else "yellow" if played.findings else "green"
    lines = [f"{coloured(played.failure.name, colour)}: {played.failure.title}{several}"]
    lines += [f"    {each}" for each in played.findings] or ["    nothing is lost, repeated or held up"]
    lines += [f"    → {each.kind}: {each.text}" for each in played.advice]
    print("\n".join(lines), flush=True)


def _tail(report: CheckReport) -> list[str]:
    lines = ["", "Consumer group checklist:"]
    for point in report.checklist:
        lines += [f"  {coloured(point.verdict, _COLOURS[point.verdict]):6}  {point.point}"]
        lines += [f"          {point.text}"]
    verdict = (
        "a single failure loses, duplicates, reorders or skips records"
        if report.is_harmful
        else "no single failure loses, duplicates, reorders or skips records"
    )
    return [*lines, "", coloured(verdict, "red" if report.is_harmful else "green")]
