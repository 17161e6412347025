"""A rolling restart whose brokers do not come back: a port is taken, or the process that restarts them ends."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from strandline.cli.cluster.control import is_there
from strandline.cli.exit_codes import DONE, FAILED
from tests.system.cli.conftest import Ran
from tests.system.commands import Command, command
from tests.system.nodes_of_up import up, value_of

Run = Callable[..., Ran]
_SECONDS_MAX = 60.0


def test_a_cluster_that_is_gone_is_not_waited_for(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "data"
    assert not is_there(tmp_path)
    with command(*up("--data", str(home), "--no-registry")) as running:
        bootstrap = value_of(running.wait_for("bootstrap.servers"))
        assert is_there(home)
        assert run("topics", "create", "seen", "-p", "1", "-b", bootstrap).code == DONE
        with _taken_when_free(_metrics_ports(running)[2]):
            failed = run("rolling-restart", "--data", str(home), "--node", "3", "--yes", "-b", bootstrap)
        assert failed.code == FAILED
        assert "stopped at broker 3: the broker did not start" in failed.err
        assert "`up` has --metrics-port" in failed.err
        # A replica is away now, so the next restart waits for it, for ten minutes.
        arguments = ("rolling-restart", "--data", str(home), "--node", "1", "--yes", "-b", bootstrap)
        with command(*arguments) as restarting:
            restarting.wait_for("to wait for", in_err=True)
            running.signal(signal.SIGKILL)
            assert restarting.wait() == FAILED
            said = "\n".join(restarting.err)
            assert f"stopped at broker 1: no `strandline up --nodes` runs in {home}" in said
            assert "Traceback" not in said
        assert not is_there(home)


def test_a_command_that_does_not_end_is_an_error(run: Run, bootstrap: str) -> None:
    failed = run(
        "rolling-restart", "--command", "exec sleep 60 {id}", "--wait", "1", "--yes", "-b", bootstrap
    )
    assert failed.code == FAILED
    assert "`exec sleep 60 1` did not end within 1 s" in failed.err


def _metrics_ports(running: Command) -> list[int]:
    urls = value_of(running.wait_for("  metrics ")).split(", ")
    return [urlsplit(url).port or 0 for url in urls]


@contextmanager
def _taken_when_free(port: int) -> Iterator[None]:
    """Listens on a port as soon as the process that has it now has ended, and before the next one starts."""
    is_over = threading.Event()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def take() -> None:
            deadline = time.monotonic() + _SECONDS_MAX
            while time.monotonic() < deadline and not is_over.wait(0.002):
                with suppress(OSError):
                    listener.bind(("127.0.0.1", port))
                    listener.listen()
                    return

        taking = threading.Thread(target=take)
        taking.start()
        try:
            yield
        finally:
            is_over.set()
            taking.join()
