"""Starts the schema registry of `strandline up`, as a process of its own beside the broker."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from strandline.cli.registry import DEFAULT_PORT, HOW_TO_INSTALL, is_installed, url_of
from strandline.node.launcher import STOPS_WITH_PARENT
from strandline.node.network import free_ports_from

if TYPE_CHECKING:
    from strandline.node.development_security import DevelopmentSecurity

_STOP_SECONDS_MAX: Final = 10


class RegistryChild:
    """A registry that ends with this process. `line` is the line about it in the banner."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Chooses a port. Raises OSError if the requested one is in use."""
        self._host = options.host
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if options.no_registry:
            self.line = ""
        elif not is_installed():
            self.line = f"  registry           none: {HOW_TO_INSTALL}\n"
        else:
            self._port = _chosen_port(options)
            scheme = "https" if options.secure else "http"
            self.line = f"  registry           {url_of(self._host, self._port, scheme)}\n"

    def start(self, bootstrap: str, security: DevelopmentSecurity | None = None) -> None:
        """Starts the process without waiting for it: the broker is ready earlier. It has the same security as the
        broker."""
        if self._port is None:
            return
        command = [sys.executable, "-m", "strandline.cli.main", "registry", "--bootstrap-server", bootstrap]
        place = ["--host", self._host, "--port", str(self._port), "--quiet"]
        self._process = subprocess.Popen(
            [*command, *place, *([] if security is None else _secured(security, bootstrap))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, STOPS_WITH_PARENT: str(os.getpid())},
            start_new_session=True,  # only this process handles Ctrl-C, and stops the child in order
        )

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _secured(security: DevelopmentSecurity, bootstrap: str) -> list[str]:
    """Returns options that name files, so that no secret is in the list of processes."""
    made = ["--command-config", str(security.write_client_properties(bootstrap))]
    settings = {"authentication.method": "BASIC"}
    if security.server is not None:
        settings["ssl.keystore.location"] = str(security.server.key_store)
        settings["ssl.truststore.location"] = str(security.server.authority)
    for key, value in settings.items():
        made += ["--set", f"{key}={value}"]
    return made


def _chosen_port(options: argparse.Namespace) -> int:
    if options.registry_port is None and options.port != 0:
        return free_ports_from(DEFAULT_PORT, 1)[0]
    asked = options.registry_port or 0
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(("127.0.0.1", asked))
        return int(trial.getsockname()[1])
