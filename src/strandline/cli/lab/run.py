"""`strandline lab run`: plays scenarios, shows what happened, and compares the outcome with the expected one."""

from __future__ import annotations

import argparse
import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import CommandError, not_found, say_error, usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import coloured

if TYPE_CHECKING:
    from strandline.lab.real.clients import ClientLibrary
    from strandline.lab.run import Run
    from strandline.lab.scenario import LabScenario

_REPLICA: Final = {
    "broker": "number",
    "role": "text",
    "epoch": "number",
    "leo": "number",
    "hw": "number",
    "lso": "number",
}
_STATE: Final = {
    "leader": "number",
    "epoch": "number",
    "isr": ["number"],
    "elr": ["number"],
    "replicas": [_REPLICA],
}
SHAPE: Final = {
    "scenario": "text",
    "title": "text",
    "source": "text",
    "claim": "text",
    "finding": "text",
    "settings": {"<setting>": "text"},
    "client": "text?",
    "as_expected": "flag",
    "differences": ["text"],
    "outcome": {
        "acknowledged": "text",
        "failed": "text",
        "untold": "text",
        "lost": "text",
        "duplicated": "text",
        "reordered": "text",
        "written_though_failed": "text",
        "seen": "text",
        "seen_twice": "text",
        "seen_and_lost": "text",
        "skipped": "text",
        "rebalances": "number",
        "errors": "text",
        "consumer_errors": "text",
        "leader": "number",
        "leader_epoch": "number",
    },
    "facts": {"<fact>": "text"},
    "figures": {"<figure>": "number"},
    "timeline": [{"at": "number", "kind": "text", "text": "text", "state": _STATE}],
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plays scenarios in simulated time, on the broker's and the client's real code, and prints the timeline. With "
        "--real they play on processes of this machine, in real time. Exits with 1 if an outcome is not the expected "
        "one, or if a scenario that was named cannot play."
    )
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help="names that `lab list` prints")
    parser.add_argument("--all", action="store_true", help="play all, and print a line for each")
    parser.add_argument(
        "--html", metavar="DIRECTORY", help="write a page for each, which a browser opens without a server"
    )
    parser.add_argument("--real", action="store_true", help="play on real processes, in real time")
    parser.add_argument(
        "--client",
        choices=("strandline", "librdkafka", "java"),
        default="strandline",
        help="with --real: the library of producers and consumers; java needs a JDK, and Kafka's jars in CLASSPATH",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="PORT",
        help="with --real: brokers listen on PORT and those after it",
    )
    add_json(parser, SHAPE, lines=True)


def call(options: argparse.Namespace) -> int:
    from strandline.lab.base import Stuck
    from strandline.lab.scenario import UnknownScenario, load, names
    from strandline.lab.stage import OnlySimulated, UnsuitableClient

    if options.all == bool(options.scenario):
        raise usage("name scenarios, or say --all; `strandline lab list` names them")
    if (options.port or options.client != "strandline") and not options.real:
        raise usage(
            "--port and --client are for --real: a simulated cluster is for Strandline's clients only"
        )
    try:
        chosen = [load(name) for name in (names() if options.all else options.scenario)]
    except UnknownScenario as error:
        raise not_found(str(error)) from None
    pages = _directory(options.html)
    is_good = True
    for scenario in chosen:
        try:
            run = _run(scenario, options)
        except Stuck as error:
            say_error(f"{scenario.name}: {error}")
            is_good = False
            continue
        except OnlySimulated as error:
            say_error(f"{scenario.name} plays only without --real: {error}")
            is_good = is_good and options.all
            continue
        except UnsuitableClient as error:
            say_error(f"{scenario.name} does not play with {options.client}: {error}")
            is_good = is_good and options.all
            continue
        is_good = is_good and not run.differences
        if pages is not None:
            _write_page(pages, run)
        if options.json:
            print_json(run.as_json())
        elif options.all:
            print(_verdict(run), flush=True)
        else:
            print("\n".join(_report(run)), flush=True)
    return DONE if is_good else FAILED


def _run(scenario: LabScenario, options: argparse.Namespace) -> Run:
    from strandline.lab.run import run_simulated

    if not options.real:
        return run_simulated(scenario)
    from strandline.lab.real.run import run_real

    library = _library(options.client)
    logging.getLogger("strandline").addHandler(
        logging.NullHandler()
    )  # brokers that are gone are no news here
    try:
        return asyncio.run(run_real(scenario, library, options.port))
    except OSError as error:
        raise usage(f"the brokers of {scenario.name} cannot listen: {error.strerror}") from None
    except RuntimeError as error:
        raise CommandError(f"{scenario.name}: {error}") from None


def _library(name: str) -> ClientLibrary:
    from strandline.lab.real.clients import Strandline
    from strandline.lab.real.outside import Java, Librdkafka
    from strandline.lab.stage import UnsuitableClient

    try:
        match name:
            case "librdkafka":
                return Librdkafka()
            case "java":
                return Java()
            case _:
                return Strandline()
    except UnsuitableClient as error:
        raise usage(str(error)) from None


def _directory(path: str | None) -> Path | None:
    if path is None:
        return None
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise usage(f"pages cannot be written to {path}: {error.strerror}") from None
    return Path(path)


def _write_page(directory: Path, run: Run) -> None:
    from strandline.lab.page import page_of

    (directory / f"{run.scenario.name}.html").write_text(page_of(run))


def _report(run: Run) -> list[str]:
    scenario = run.scenario
    lines = [coloured(scenario.title, "bold"), f"{scenario.source}: {scenario.claim}"]
    if scenario.finding:
        lines.append(f"Found here: {scenario.finding}")
    lines += ["", run.timeline.as_text(), ""]
    lines += [
        f"{name.replace('_', ' ')}: {value}"
        for name, value in run.outcome.as_json().items()
        if value not in ("", 0) or name == "leader_epoch"
    ]
    lines += [f"{name}: {value}" for name, value in run.facts.items()]
    lines += [f"{name}: {value:g} s" for name, value in run.figures.items()]
    return [*lines, _verdict(run), ""]


def _verdict(run: Run) -> str:
    if not run.differences:
        return f"{coloured('as expected', 'green')}  {run.scenario.name}: {_loss(run)}"
    return f"{coloured('not as expected', 'red')}  {run.scenario.name}: {'; '.join(run.differences)}"


def _loss(run: Run) -> str:
    found = run.outcome
    parts = [f"acknowledged and lost {found.lost}" if found.lost else "nothing acknowledged is lost"]
    if found.duplicated:
        parts.append(f"written twice {found.duplicated}")
    if found.seen_twice:
        parts.append(f"read twice {found.seen_twice}")
    if found.skipped:
        parts.append(f"skipped {found.skipped}")
    if found.failed:
        parts.append(f"failed {found.failed} ({found.errors})")
    return ", ".join(parts)
