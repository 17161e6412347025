"""A broker in a process of its own, for tests in blocking code."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from strandline.client.admin.access import Acl
from strandline.config import render_properties
from strandline.node import launcher
from strandline.node.config_providers import broker_config
from strandline.node.development_security import DevelopmentSecurity
from strandline.node.directories import format_if_empty
from strandline.node.random import RealRandom
from strandline.security.authorizer import AUTHORIZER_CLASS
from strandline.storage.data_directory import NODE_LOG, NODE_SETTINGS
from strandline.testing.embedded import named_settings
from strandline.testing.fault_channels import BrokerGone, PipeControl
from strandline.testing.faults import BrokerFaults
from strandline.testing.reachable import BlockingCalls
from strandline.testing.registry_process import running_registry
from strandline.wire.records.metadata import AccessControlEntryRecord
from strandline.wire.schema import Message

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 20
# The number of log lines in the error about a broker that died.
LAST_LINES = 15
# Brokers that were started and not yet stopped or killed, for reports of tests.
launched_brokers: list[BrokerProcess] = []
# An authorizer whose only super user is the one as which nodes log in.
AUTHORIZER_SETTINGS = {"authorizer.class.name": AUTHORIZER_CLASS, "super.users": "User:node"}


class BrokerDied(RuntimeError):
    """A broker's process ended although no test had stopped or killed it; the text has its status and last log
    lines."""


class BrokerProcess(BlockingCalls):
    """A broker that runs from `start` on, and can be killed, stopped and started again on the same data."""

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, str] | None = None,
        security: DevelopmentSecurity | None = None,
        acls: Sequence[Acl] = (),
    ) -> None:
        self.data_dir = data_dir
        self.security = security
        self._acls = acls
        self.settings = launcher.embedded_settings(
            port=0, data=str(data_dir), host="127.0.0.1", given=settings
        )
        if security is not None:
            self.settings = security.broker_settings(self.settings)
        self._config = data_dir.parent / f"{data_dir.name}{NODE_SETTINGS}"
        self._log = data_dir.parent / f"{data_dir.name}{NODE_LOG}"
        self._process: subprocess.Popen[str] | None = None
        self._control: PipeControl | None = None
        self._is_paused = False
        self._is_stopping = False
        # False has effect at the next start: the broker is then built without switches for faults, like a server.
        self.takes_faults = True
        self.is_ready = False  # its process has printed that it is ready
        self.cut_at_start: list[dict[str, Any]] = []  # commands that cut links from the next start on
        self.bootstrap = ""
        self.registry_url = ""  # the URL of the registry beside it, if there is one
        self.metrics_url = ""  # the URL of its metrics, if it serves them

    @property
    def client_settings(self) -> dict[str, str]:
        """The settings of a client, by Kafka's names: the broker's address, and the login."""
        secured = {} if self.security is None else self.security.client_settings()
        return {"bootstrap.servers": self.bootstrap, **secured}

    @property
    def librdkafka_settings(self) -> dict[str, str]:
        """The settings for confluent-kafka and kcat."""
        secured = {} if self.security is None else self.security.librdkafka_settings()
        return {"bootstrap.servers": self.bootstrap, **secured}

    @property
    def python_settings(self) -> dict[str, Any]:
        """The settings for aiokafka and kafka-python, as keyword arguments."""
        secured = {} if self.security is None else self.security.python_settings()
        return {"bootstrap_servers": self.bootstrap, **secured}

    def format(self) -> None:
        """Writes users and ACLs into a new data directory, before the first start; `running_broker` does it."""
        records: list[Message] = [] if self.security is None else [*self.security.scram_users()]
        records += [_rule(acl) for acl in self._acls]
        if records:
            events = launcher.stderr_events(node=1, level="warn")
            format_if_empty(broker_config(self.settings), events, users=records)

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def log_text(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    @property
    def label(self) -> str:
        """The broker in a few words, for reports."""
        return f"broker {self.bootstrap or self.data_dir}"

    @property
    def log_path(self) -> Path:
        return self._log

    @property
    def exit_status(self) -> int | None:
        """The status of a process that ended although no test had stopped or killed it, negative for a signal; None
        otherwise."""
        return None if self._process is None else self._process.poll()

    @property
    def death(self) -> str:
        """The text about a process with an `exit_status`: how it ended, and the last lines of its log; empty for
        None."""
        status = self.exit_status
        if status is None:
            return ""
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        last = self._last_lines or "(nothing)"
        return (
            f"{self.label} (process {self.pid}) {how}, though no test had stopped or killed it through its fixture; "
            f"the last lines of its log:\n{last}"
        )

    @property
    def _last_lines(self) -> str:
        return "\n".join(self.log_text.splitlines()[-LAST_LINES:])

    @property
    def is_running(self) -> bool:
        """True while the process runs; False if it was stopped or killed, or has ended by itself."""
        return self._process is not None and self._process.poll() is None

    @property
    def faults(self) -> BrokerFaults:
        """The faults of this broker. They end with its process: one that is started again has none."""
        return BrokerFaults(self.control)

    def control(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the response to a command over the pipe to the process; see `node.faults.control`."""
        if self._control is None:
            why = "was started without faults" if self.is_running else "is not running"
            raise BrokerGone(f"the broker {why}: faults are set on one that runs and takes them")
        if self._is_paused:
            raise BrokerGone("the broker is paused: resume it first")
        return self._control.do(command)

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Starts the process without waiting for it; RuntimeError if it runs already."""
        if self.is_running:
            raise RuntimeError(f"the broker runs already, as process {self.pid}: stop or kill it first")
        self._release()  # if the process before has ended by itself
        self._config.write_text(render_properties(self.settings))
        if not self.takes_faults:
            self._spawn({}, ())
            return
        ours, theirs = socket.socketpair()
        with theirs:
            cuts = json.dumps(self.cut_at_start)
            given = {launcher.CONTROL_FD: str(theirs.fileno()), launcher.CUT_LINKS: cuts}
            self._spawn(given, (theirs.fileno(),))
        self._control = PipeControl(ours)

    def _spawn(self, environment: Mapping[str, str], descriptors: tuple[int, ...]) -> None:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command("server", "--config", str(self._config)),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, launcher.STOPS_WITH_PARENT: str(os.getpid()), **environment},
                pass_fds=descriptors,
                start_new_session=True,  # a Ctrl-C reaches only the process that started it, which stops it in order
            )
        launched_brokers.append(self)

    @property
    def start_command(self) -> list[str]:
        """The command that starts this broker by hand, after it has ended."""
        return ["strandline", "server", "--config", str(self._config)]

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "strandline.cli.main", *arguments]

    def wait_until_ready(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        # readline() has no timeout; killing the process ends it.
        limit = threading.Timer(READY_SECONDS_MAX, self._process.kill)
        limit.daemon = True  # a Ctrl-C must not leave an interpreter that waits for it
        limit.start()
        try:
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
        if not line.startswith("ready"):
            was_slow = self._process.wait(STOP_SECONDS_MAX) == -signal.SIGKILL
            why = f"was not ready within {READY_SECONDS_MAX} s" if was_slow else "did not start"
            raise RuntimeError(f"the broker {why}:\n{self._last_lines}")
        told = dict(each.partition("=")[::2] for each in line.split()[1:])
        self.is_ready = True
        self.bootstrap = told["bootstrap.servers"]
        self.metrics_url = told.get("metrics", "")
        if self.metrics_url:
            self.settings[launcher.METRICS_PORT] = self.metrics_url.rpartition(":")[2].partition("/")[0]
        # A restart keeps the port, so that clients find the broker again.
        port = self.bootstrap.rpartition(":")[2]
        for key in ("listeners", "advertised.listeners"):
            first, comma, rest = self.settings.get(key, "").partition(",")
            if first.endswith("://127.0.0.1:0"):
                self.settings[key] = first.removesuffix("0") + port + comma + rest

    def ask_to_stop(self) -> None:
        """Sends the signal without waiting: several nodes stop at the same time."""
        if self._process is not None:
            self._is_stopping = True
            self._process.send_signal(signal.SIGTERM)
            self.resume()  # a paused process handles no signal

    def pause(self) -> None:
        """Pauses the process, as if its machine had stopped: connections stay open, and there are no responses."""
        assert self._process is not None, "the broker is not running"
        self._process.send_signal(signal.SIGSTOP)
        self._is_paused = True

    def resume(self) -> None:
        assert self._process is not None, "the broker is not running"
        self._process.send_signal(signal.SIGCONT)
        self._is_paused = False

    def stop(self) -> int:
        """Shuts the broker down in order, and returns its exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the process as `kill -9` does."""
        self._end(signal.SIGKILL)

    def send_kill(self) -> None:
        """Sends the signal without waiting: several nodes end at the same time. `kill` waits."""
        assert self._process is not None, "the broker is not running"
        self._process.kill()

    def _end(self, number: signal.Signals) -> int:
        process = self._process
        if process is None:
            return 0
        if number == signal.SIGTERM and not self._is_stopping:
            self.ask_to_stop()
        elif number != signal.SIGTERM:
            process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the broker did not stop:\n{self.log_text}") from None
        finally:
            process.kill()  # if it still runs
            self._release()

    def _release(self) -> None:
        """Forgets a process that has ended or was killed, and closes the pipe to it."""
        if self._process is not None:
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
        if self._control is not None:
            self._control.close()
        if self in launched_brokers:
            launched_brokers.remove(self)
        self._process = self._control = None
        self._is_stopping = self.is_ready = self._is_paused = False


def _rule(acl: Acl) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=RealRandom().uuid(),
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


@contextmanager
def stopping(stop: Callable[[], object]) -> Iterator[None]:
    """Calls `stop` at the end. An error in it does not hide an earlier one, and becomes a note of that one."""
    try:
        yield
    except BaseException as error:
        try:
            stop()
        except RuntimeError as unstopped:
            error.add_note(f"Besides, {unstopped}")
        raise
    stop()


@contextmanager
def running_broker(
    *,
    data_dir: Path | None = None,
    metrics: bool = False,
    registry: bool = False,
    security: str | DevelopmentSecurity | None = None,
    acls: Iterable[Acl] | None = None,
    **settings: str | int | bool,
) -> Iterator[BrokerProcess]:
    """Runs a broker in a process of its own, on a free port; settings have Kafka's names, with `_` for `.`.

    With `metrics` it serves metrics over HTTP, at `metrics_url`. With `registry` a schema registry runs beside it, at
    `registry_url`. `security` is SSL, SASL_PLAINTEXT or SASL_SSL, and `client_settings`, `librdkafka_settings` and
    `python_settings` have the settings for it.
    With `acls` the broker has an authorizer and these rules from the beginning; an empty list denies everything.
    Without `security` everybody is User:ANONYMOUS, with it the user is User:alice.
    """
    with tempfile.TemporaryDirectory(prefix="strandline-test-", ignore_cleanup_errors=True) as home:
        secured = (
            DevelopmentSecurity(Path(home) / "security", security) if isinstance(security, str) else security
        )
        given = named_settings(settings, metrics)
        if acls is not None:
            given = {**AUTHORIZER_SETTINGS, **given}
        process = BrokerProcess(data_dir or Path(home) / "data", given, secured, tuple(acls or ()))
        process.format()
        with stopping(process.stop):
            process.start()
            if not registry:
                yield process
                return
            with running_registry(process.bootstrap, Path(home) / "registry.log") as beside:
                process.registry_url = beside.url
                yield process
