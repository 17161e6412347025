"""A real Apache Kafka node: KRaft, broker and controller in one process, on loopback.

It is ready when it answers ApiVersions on its socket and lists itself in Metadata (a broker that the
controller still fences accepts connections, but is missing there, and refuses to create topics).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from strandline.base.ids import new_uuid, uuid_text
from strandline.testing.clusters import free_ports
from tests.oracle.readiness import lists_a_broker

# What bin/kafka-server-start.sh and kafka-run-class.sh pass: a benchmark must run Kafka as shipped.
AS_SHIPPED = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
# Starts in half the time and leaves the second core to the client; slower once warm.
QUICK_START = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
LOG_TAIL_LINES = 40


class KafkaDidNotStartError(Exception):
    """Apache Kafka exited or stayed silent; the message ends with the last lines of its log."""


class ApacheKafka:
    """One node. `settings` are server properties on top of those a single node on loopback needs.

    `start` after `stop` continues on the same ports and data, with the `settings` of that moment.
    """

    def __init__(
        self,
        *,
        java: Path,
        jars: Path,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = AS_SHIPPED,
        node_id: int = 1,
        cluster_id: str | None = None,
        broker_port: int | None = None,
    ) -> None:
        """`broker_port` is that of the listener without login, where `settings` have listeners of their own."""
        self.settings = dict(settings or {})
        self.log_file = directory / "server.log"
        self.cluster_id = cluster_id or uuid_text(new_uuid(os.urandom))
        self._java = java
        self._jars = jars
        self._directory = directory
        self._jvm_options = tuple(jvm_options)
        self._node_id = node_id
        self._broker_port, self._controller_port = free_ports(2)
        self._broker_port = broker_port or self._broker_port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._broker_port}"

    @property
    def data_dir(self) -> Path:
        return Path(self.settings.get("log.dirs", self._directory / "data"))

    @property
    def pid(self) -> int:
        assert self._process is not None, "Apache Kafka has not been started"
        return self._process.pid

    def properties(self) -> dict[str, str]:
        """server.properties of this node."""
        broker = f"PLAINTEXT://127.0.0.1:{self._broker_port}"
        controller = f"CONTROLLER://127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": str(self._node_id),
            "controller.quorum.voters": f"{self._node_id}@127.0.0.1:{self._controller_port}",
            "listeners": f"{broker},{controller}",
            "advertised.listeners": broker,
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            # One node cannot hold three replicas of the internal topics.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.settings,
        }

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Format the data directory if it is new, start, and return once clients can use the node."""
        assert self._process is None, "Apache Kafka is running already"
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        if not (self.data_dir / "meta.properties").exists():
            self._format(config, timeout_s=timeout_s)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(self._jvm_options, "kafka.Kafka", str(config)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
            )
        try:
            self._wait_until_ready(time.monotonic() + timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM, and SIGKILL when that does not end it in time."""
        if self._process is None:
            return
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Take its share of the machine away without ending it; benchmarks pause whom they do not measure."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        if not self.log_file.exists():
            return "(no log)"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> ApacheKafka:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _command(self, jvm_options: Sequence[str], main: str, *args: str) -> list[str]:
        return [str(self._java), *jvm_options, "-cp", f"{self._jars}/*", main, *args]

    def _format(self, config: Path, *, timeout_s: float) -> None:
        done = subprocess.run(
            self._command(
                QUICK_START, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(config)
            ),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode != 0:
            raise KafkaDidNotStartError(f"StorageTool format failed:\n{done.stdout}\n{done.stderr}")

    def _wait_until_ready(self, deadline: float) -> None:
        assert self._process is not None
        while not lists_a_broker(self.bootstrap):
            if self._process.poll() is not None:
                raise KafkaDidNotStartError(
                    f"Apache Kafka exited with {self._process.returncode}:\n{self.log_tail()}"
                )
            if time.monotonic() > deadline:
                raise KafkaDidNotStartError(f"Apache Kafka was not ready in time:\n{self.log_tail()}")
            time.sleep(0.05)
