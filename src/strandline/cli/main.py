"""The `strandline` command: finds the command that was typed, runs it, and prints its errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from strandline.cli.exit_codes import DONE, INTERRUPTED
from strandline.cli.failures import CommandError, say_error
from strandline.cli.parser import build_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            options = build_parser(typed).parse_args(typed)
            code: int = options.call(options)
            return code
        except CommandError as error:
            say_error(error)
            return error.code
        finally:
            # All output is written here, because an error that occurs later could not be reported.
            print(end="", flush=True)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # for output that is still buffered
        os.close(nowhere)
        return DONE


if __name__ == "__main__":
    sys.exit(main())
