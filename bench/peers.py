"""The two brokers under test, each a process of its own that can be paused while the other is measured.

Both have the settings of a single node on loopback, and their own defaults for all settings that matter for speed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from bench.measure import wait_until_quiet
from strandline.node import launcher
from strandline.testing.clusters import free_ports
from tests.oracle.apache_kafka import AS_SHIPPED, ApacheKafka
from tests.oracle.readiness import lists_a_broker

STRANDLINE = "strandline"
KAFKA = "kafka"
WITHOUT_SENDFILE = "strandline-pread"

# Deleted topics give their disk space back at once; otherwise a run would fill the disk with what it has measured.
SAME_SETTINGS = {"log.segment.delete.delay.ms": "0"}
# A paused broker misses its heartbeats; Kafka's controller would fence it as soon as it goes on.
KAFKA_SETTINGS = {"broker.session.timeout.ms": "3600000"}

READY_WAIT_S_MAX = 60.0
# Apache Kafka closes 2,000 partitions in some seconds; a kill would make the next start a recovery.
STOP_WAIT_S_MAX = 120.0


class Peer(ABC):
    """A broker under test."""

    name: str
    data_dir: Path

    @property
    @abstractmethod
    def bootstrap(self) -> str: ...

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    def start(self) -> None:
        """Starts the broker, and returns when clients can use it."""

    @abstractmethod
    def stop(self) -> None:
        """Stops the broker cleanly, if it runs."""

    def kill(self) -> None:
        """Kills the broker: its next start has to recover what was not synced."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Pauses the broker when it has nothing left to do: unfinished work would disturb its next measurement."""
        wait_until_quiet(self.pid)
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Resumes the broker, and returns when it has caught up with its timers and responds."""
        os.kill(self.pid, signal.SIGCONT)
        wait_until_quiet(self.pid)
        deadline = time.monotonic() + READY_WAIT_S_MAX
        while not lists_a_broker(self.bootstrap):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not answer after its pause")
            time.sleep(0.05)


class StrandlinePeer(Peer):
    """Strandline, started by `strandline server` or by a module of the benchmark that changes one thing."""

    def __init__(
        self,
        directory: Path,
        *,
        name: str = STRANDLINE,
        module: str = "strandline.cli.main",
        more: Mapping[str, str] | None = None,
        source: Path | None = None,
    ) -> None:
        """`source` is the directory to import Strandline from, if that is not this one."""
        self.name = name
        self._environment = {**os.environ, "PYTHONPATH": str(source)} if source else None
        self.data_dir = directory / "data"
        self._module = module
        self._config = directory / "server.properties"
        self._log = directory / "server.log"
        port = free_ports(1)[0]
        settings = launcher.embedded_settings(port=port, data=str(self.data_dir), host="127.0.0.1")
        self._settings = {**settings, **SAME_SETTINGS, **(more or {})}
        listener = self._settings["listeners"].split(",")[0]
        self._bootstrap = f"127.0.0.1:{listener.rpartition(':')[2]}"
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        return self._bootstrap

    @property
    def pid(self) -> int:
        assert self._process is not None, "Strandline is not running"
        return self._process.pid

    def start(self) -> None:
        assert self._process is None, "Strandline is running already"
        self._config.parent.mkdir(parents=True, exist_ok=True)
        self._config.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, "server", "--config", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
                # Ctrl-C is for the bench, which then stops its brokers itself.
                start_new_session=True,
            )
        assert self._process.stdout is not None
        if not self._process.stdout.readline().startswith("ready "):
            self._process.wait(READY_WAIT_S_MAX)
            self._process = None
            raise RuntimeError(f"Strandline did not start:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(STOP_WAIT_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


class KafkaPeer(Peer):
    """Apache Kafka with the heap and the JVM options that its own scripts give it."""

    name = KAFKA

    def __init__(
        self,
        directory: Path,
        *,
        java: Path,
        jars: Path,
        more: Mapping[str, str] | None = None,
        broker_port: int | None = None,
    ) -> None:
        """`broker_port` is that of the plain listener; `more` may have settings of further listeners."""
        self._kafka = ApacheKafka(
            java=java,
            jars=jars,
            directory=directory,
            settings={**SAME_SETTINGS, **KAFKA_SETTINGS, **(more or {})},
            jvm_options=AS_SHIPPED,
            broker_port=broker_port,
        )
        self.data_dir = self._kafka.data_dir

    @property
    def bootstrap(self) -> str:
        return self._kafka.bootstrap

    @property
    def pid(self) -> int:
        return self._kafka.pid

    def change(self, settings: Mapping[str, str]) -> None:
        """Changes settings for the next start."""
        self._kafka.settings.update(settings)

    def start(self) -> None:
        self._kafka.start()

    def stop(self) -> None:
        self._kafka.stop(timeout_s=STOP_WAIT_S_MAX)
