"""The parser of `strandline`, built from the table of commands. Only the module of the typed command is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from strandline import __version__
from strandline.cli.table import COMMANDS, Command, Group

_WIDTH: Final = 100


class Formatter(argparse.HelpFormatter):
    """Help with the same width on every machine, so that the reference page does not depend on a terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_WIDTH)


class Parser(argparse.ArgumentParser):
    """A parser whose sub-parsers are of the same class, with the same help."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(**settings)
        self._is_inside = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses as argparse does, with two differences.

        The parser of a command refuses unknown arguments itself: so the message has the options of that command, and
        not those of `strandline`. And options may be between positional arguments of which the last ones may be
        missing, as in `produce TOPIC --whole FILE`: argparse takes FILE as missing there.
        """
        if self._is_inside:
            return super().parse_known_args(args, namespace)
        positionals = self._get_positional_actions()
        if len(positionals) > 1 and positionals[-1].nargs == "*":
            self._is_inside = True  # argparse calls this method again
            try:
                parsed, unknown = self.parse_known_intermixed_args(args, namespace)
            finally:
                self._is_inside = False
        else:
            parsed, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Checks as argparse does, but does not list sixty commands to somebody who has mistyped one."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            from difflib import get_close_matches

            near = get_close_matches(value, action.choices)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(action.choices)}"
            raise argparse.ArgumentError(action, f"there is no {value!r}: {hint}")
        super()._check_value(action, value)


def build_parser(arguments: Sequence[str] | None = None) -> Parser:
    """Returns the parser for these arguments. Only the command that they name has its options; with None every command
    has."""
    parser = Parser(
        prog="strandline",
        description="A commit log that speaks Kafka's protocol, without a JVM.",
    )
    parser.add_argument("--version", action="version", version=f"strandline {__version__}")
    _add_rows(parser, COMMANDS, arguments, ("command", "COMMAND"))
    return parser


def _add_rows(
    parser: argparse.ArgumentParser,
    rows: Mapping[str, Command | Group] | Mapping[str, Command],
    arguments: Sequence[str] | None,
    name: tuple[str, str],
) -> None:
    dest, metavar = name
    commands = parser.add_subparsers(dest=dest, required=True, metavar=metavar)
    typed, rest = (None, None) if arguments is None else ("".join(arguments[:1]), arguments[1:])
    # Each parser costs a millisecond, so only the parser of a known command is built.
    shown = {each: row for each, row in rows.items() if each == typed} or rows
    for each, row in shown.items():
        added = commands.add_parser(each, help=row.help)
        if typed not in (None, each):
            continue
        if isinstance(row, Group):
            added.description = f"{row.help[:1].upper()}{row.help[1:]}."
            _add_rows(added, row.actions, rest, ("action", "ACTION"))
        else:
            module = import_module(f"strandline.cli.{row.module}")
            module.add_arguments(added)
            added.set_defaults(call=module.call)


def parsers_by_name(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of all commands and of their actions by the typed words, such as "topics create"."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                found[name] = each
                found |= {f"{name} {below}": one for below, one in parsers_by_name(each).items()}
    return found
