"""`strandline completion`: completion for shells, including the topics and groups of the cluster.

`strandline completion bash` prints a function for the shell; it calls `strandline completion words -- …`, which prints
one word a line. Names of topics and groups come from the cluster that the line names. If it does not respond within a
second, there are none.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final

from strandline.cli.exit_codes import DONE

_SCRIPTS: Final = {
    "bash": """_strandline() {
  local IFS=$'\\n'
  COMPREPLY=($(strandline completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _strandline strandline
""",
    "zsh": """#compdef strandline
_strandline() {
  local -a found
  found=("${(@f)$(strandline completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a found
}
compdef _strandline strandline
""",
    "fish": """function _strandline
  strandline completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c strandline -f -a '(_strandline)'
""",
}
_TIMEOUT_S: Final = "1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prints the script with which a shell completes commands, options, topics and groups. Use it as "
        'eval "$(strandline completion bash)", the same for zsh, or strandline completion fish | source.'
    )
    parser.add_argument(
        "shell", choices=(*_SCRIPTS, "words"), help="bash, zsh or fish; `words` is used by these scripts"
    )
    parser.add_argument("line", nargs="*", metavar="WORD", help=argparse.SUPPRESS)


def call(options: argparse.Namespace) -> int:
    if options.shell in _SCRIPTS:
        print(_SCRIPTS[options.shell], end="")
        return DONE
    line = options.line or [""]
    for word in candidates(line):
        if word.startswith(line[-1]):
            print(word)
    return DONE


def candidates(line: Sequence[str]) -> list[str]:
    """Returns the words that can replace the last, unfinished one."""
    from strandline.cli.parser import build_parser

    parser: argparse.ArgumentParser = build_parser(line[:-1])
    path = 0
    for word in line[:-1]:
        below = _subparsers(parser)
        if below is None or word not in below:
            break
        parser, path = below[word], path + 1
    below = _subparsers(parser)
    if below is not None:
        return [*below, "--help"]
    if len(line) >= 2:
        action = parser._option_string_actions.get(line[-2])
        if action is not None and action.nargs != 0:
            return _values(action, line)
    if line[-1].startswith("-"):
        return sorted(name for name in parser._option_string_actions if name.startswith("--"))
    positional = [each for each in parser._actions if not each.option_strings]
    given = [word for word in line[path:-1] if not word.startswith("-")]
    if not positional:
        return sorted(name for name in parser._option_string_actions if name.startswith("--"))
    return _values(positional[min(len(given), len(positional) - 1)], line)


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser] | None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return None


def _values(action: argparse.Action, line: Sequence[str]) -> list[str]:
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    metavar = str(action.metavar or "")
    if metavar.startswith("TOPIC"):
        return _listed(["topics", "list", "--names"], line)
    if metavar == "GROUP":
        return _listed(["groups", "list", "--names"], line)
    if metavar in ("CONTEXT", "NAME") and action.dest in ("context", "name"):
        from strandline.cli import contexts

        return sorted(contexts.load().by_name)
    return []


def _listed(command: list[str], line: Sequence[str]) -> list[str]:
    """Returns the output of a command for the cluster that the line names; nothing if it does not respond."""
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    from strandline.cli.main import main

    for option in ("-b", "--bootstrap-server", "--context"):
        if option in line[:-1]:
            command = [*command, option, line[line.index(option) + 1]]
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(open(os.devnull, "w")):
        main([*command, "--timeout", _TIMEOUT_S])
    return [each for each in out.getvalue().splitlines() if " " not in each]
