"""`strandline torture`: ten faults against a program of the user's own."""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import shutil

from strandline.cli.arguments import seconds
from strandline.cli.exit_codes import DONE, FAILED, USAGE
from strandline.cli.failures import CommandError

_EPILOG = """
The command is run once for each fault, against a cluster of three nodes that this starts. It finds the cluster in the
environment (STRANDLINE_BOOTSTRAP, STRANDLINE_TOPIC, STRANDLINE_GROUP, STRANDLINE_RECORDS, STRANDLINE_TRANSACTIONAL_ID)
or in its arguments, where {bootstrap}, {topic}, {group}, {records} and {transactional_id} are filled in.
A consumer prints {"topic": "…", "partition": 0, "offset": 7} for each record that is done. A producer writes records
whose value is an id from 0 up to STRANDLINE_RECORDS, or a JSON object with it, and prints {"id": 7} for each that is
acknowledged.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Runs ten faults that every consumer and producer should survive against a program, and says what it lost, did "
        "twice, did out of order, or never reached. Exits with 1 if a fault was not survived."
    )
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--command", default="", metavar="COMMAND", help="starts the program")
    parser.add_argument(
        "--role", choices=("consumer", "producer"), default="consumer", help="(default: consumer)"
    )
    parser.add_argument(
        "--guarantee",
        choices=("at-least-once", "exactly-once"),
        help="with at-least-once, duplicates are told and allowed (default: for consumers; producers: exactly-once)",
    )
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME", help="only this fault; may be repeated"
    )
    parser.add_argument("--list", action="store_true", help="name the faults, and run none")
    parser.add_argument(
        "--quiet-time",
        type=seconds,
        default=12.0,
        metavar="SECONDS",
        help="a program that says nothing new for as long is stuck (default: 12)",
    )
    parser.add_argument(
        "--first-time",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long the program may take to begin (default: 30)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each fault")


def call(options: argparse.Namespace) -> int:
    from strandline.testing.torture.run import torture
    from strandline.testing.torture.trials import BY_NAME, TRIALS

    if options.list:
        for trial in TRIALS:
            print(f"{trial.name:<22} {trial.what} ({', '.join(trial.roles)})")
        return DONE
    for name in options.fault:
        if name not in BY_NAME:
            raise CommandError(f"there is no fault {name}; there is {', '.join(BY_NAME)}", USAGE)
    _check_command(options.command)
    # Nodes are killed here on purpose: what our own clients think of that is for nobody.
    logging.getLogger("strandline").addHandler(logging.NullHandler())
    chosen = [BY_NAME[name] for name in options.fault] or list(TRIALS)
    failed = survived = 0
    with torture(
        options.command,
        role=options.role,
        guarantee=options.guarantee,
        quiet_s=options.quiet_time,
        first_s=options.first_time,
    ) as trials:
        for trial in chosen:
            try:
                result = trials.run(trial)
            except OSError as error:
                raise CommandError(f"--command: {error}") from error
            print(json.dumps(result.as_json()) if options.json else result, flush=True)
            survived += bool(not result.skipped and result.passed)
            failed += not result.passed
    if not options.json:
        print(f"{survived} survived, {failed} failed, {len(chosen) - survived - failed} skipped")
    return FAILED if failed else DONE


def _check_command(command: str) -> None:
    """Raises CommandError before anything is started for a command that cannot be run."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"--command: {error}", USAGE) from error
    if not words:
        raise CommandError("say how your program is started, with --command", USAGE)
    if shutil.which(words[0]) is None:
        raise CommandError(f"--command: {words[0]} is no program that can be run", USAGE)
