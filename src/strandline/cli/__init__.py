"""The command line. Parsing is by argparse, so that `strandline up` loads nothing that a broker does not need."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def main() -> int:
    """Runs the `strandline` command."""
    with ctrl_c_ends_at_once():
        from strandline.cli.main import main as run
    return run()


@contextmanager
def ctrl_c_ends_at_once() -> Iterator[None]:
    """Has a Ctrl-C end the process at once while modules are loaded, as it ends one without handlers. As an exception
    it would print a traceback, or be lost: some modules swallow errors that are raised while they are imported."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as in the background, or somebody handles it
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
