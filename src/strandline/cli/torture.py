"""`strandline torture`: runs a program of the user under ten faults."""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import shutil

from strandline.cli.arguments import seconds
from strandline.cli.exit_codes import DONE, FAILED, USAGE
from strandline.cli.failures import CommandError
from strandline.cli.output.document import add_json

_EPILOG = """
The program is run once for each fault, against a cluster of three nodes that this command starts. It finds the cluster
in the environment (STRANDLINE_BOOTSTRAP, STRANDLINE_TOPIC, STRANDLINE_GROUP, STRANDLINE_RECORDS,
STRANDLINE_TRANSACTIONAL_ID) or in its arguments, where {bootstrap}, {topic}, {group}, {records} and {transactional_id}
are filled in. A consumer prints {"topic": "…", "partition": 0, "offset": 7} for each record that is done. A producer
writes records whose value is an id from 0 up to STRANDLINE_RECORDS, or a JSON object with it, and prints {"id": 7} for
each that is acknowledged.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Runs a program under ten faults that every consumer and producer should survive, and reports records that "
        "it lost, processed twice, processed out of order or never reached. The exit code is 1 if the program did "
        "not survive a fault."
    )
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--command", default="", metavar="COMMAND", help="the command that starts the program"
    )
    parser.add_argument(
        "--role",
        choices=("consumer", "producer"),
        default="consumer",
        help="the role of the program (default: consumer)",
    )
    parser.add_argument(
        "--guarantee",
        choices=("at-least-once", "exactly-once"),
        help="the expected guarantee; with at-least-once, duplicates are reported and allowed (default: "
        "at-least-once for consumers, exactly-once for producers)",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME",
        help="run only this fault; repeat it for several",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the faults, and run none; with --json each has fault, text and roles",
    )
    parser.add_argument(
        "--quiet-time",
        type=seconds,
        default=12.0,
        metavar="SECONDS",
        help="a program that reports nothing new for this time is stuck (default: 12)",
    )
    parser.add_argument(
        "--first-time",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="the time that the program may take to begin (default: 30)",
    )
    add_json(
        parser,
        {
            "fault": "text",
            "role": "text",
            "verdict": "text",
            "seconds": "number",
            "fault_seconds": "number?",
            "problems": [{"kind": "text", "text": "text", "moment_s": "number?", "is_allowed": "flag"}],
            "notes": ["text"],
        },
        lines=True,
    )


def call(options: argparse.Namespace) -> int:
    from strandline.testing.torture.run import torture
    from strandline.testing.torture.trials import BY_NAME, TRIALS

    if options.list:
        for trial in TRIALS:
            shown = {"fault": trial.name, "text": trial.what, "roles": list(trial.roles)}
            line = f"{trial.name:<22} {trial.what} ({', '.join(trial.roles)})"
            print(json.dumps(shown) if options.json else line)
        return DONE
    for name in options.fault:
        if name not in BY_NAME:
            raise CommandError(f"there is no fault {name}; there is {', '.join(BY_NAME)}", USAGE)
    _check_command(options.command)
    # Nodes are killed here on purpose, so the warnings of our own clients are of no use.
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
        raise CommandError("give the command that starts your program with --command", USAGE)
    if shutil.which(words[0]) is None:
        raise CommandError(f"--command: {words[0]} is not a program that can be run", USAGE)
