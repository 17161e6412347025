"""Apache Kafka's command line tools, with bounded time.

They run one after another in one JVM, because starting one costs about a second; `run_alone` gives a tool a JVM
of its own, as its shell script would.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.oracle.java_worker import JVM_OPTIONS, JavaWorker

TOOL_TIMEOUT_S = 120.0

# The class behind each of Kafka's scripts.
MAIN_CLASSES = {
    "AclCommand": "org.apache.kafka.tools.AclCommand",
    "BrokerApiVersionsCommand": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "ClientMetricsCommand": "org.apache.kafka.tools.ClientMetricsCommand",
    "ClusterTool": "org.apache.kafka.tools.ClusterTool",
    "ConfigCommand": "kafka.admin.ConfigCommand",
    "ConsoleConsumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "ConsoleProducer": "org.apache.kafka.tools.ConsoleProducer",
    "ConsumerPerformance": "org.apache.kafka.tools.ConsumerPerformance",
    "ConsumerGroupCommand": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "DelegationTokenCommand": "org.apache.kafka.tools.DelegationTokenCommand",
    "DeleteRecordsCommand": "org.apache.kafka.tools.DeleteRecordsCommand",
    "DumpLogSegments": "org.apache.kafka.tools.DumpLogSegments",
    "FeatureCommand": "org.apache.kafka.tools.FeatureCommand",
    "GetOffsetShell": "org.apache.kafka.tools.GetOffsetShell",
    "LeaderElectionCommand": "org.apache.kafka.tools.LeaderElectionCommand",
    "LogDirsCommand": "org.apache.kafka.tools.LogDirsCommand",
    "MetadataQuorumCommand": "org.apache.kafka.tools.MetadataQuorumCommand",
    "ProducerPerformance": "org.apache.kafka.tools.ProducerPerformance",
    "ReassignPartitionsCommand": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "TransactionsCommand": "org.apache.kafka.tools.TransactionsCommand",
    "TopicCommand": "org.apache.kafka.tools.TopicCommand",
    "VerifiableProducer": "org.apache.kafka.tools.VerifiableProducer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    def succeeded(self) -> ToolResult:
        """Itself, after checking that the tool found nothing to complain about."""
        assert self.exit_code == 0, f"exit code {self.exit_code}\n{self.stdout}\n{self.stderr}"
        assert self.stderr == "", self.stderr
        return self


class KafkaTools:
    def __init__(self, *, java: Path, jars: Path) -> None:
        self._java = java
        self._jars = jars
        source = Path(__file__).parent / "java" / "ToolRunner.java"
        self._worker = JavaWorker(java=java, jars=jars, source=source)

    def run(self, tool: str, *args: object, stdin: str = "", timeout_s: float = TOOL_TIMEOUT_S) -> ToolResult:
        """Run a tool (a key of MAIN_CLASSES) in the shared JVM."""
        question = {"main": MAIN_CLASSES[tool], "args": [str(arg) for arg in args], "stdin": stdin}
        return ToolResult(**self._worker.call(question, timeout_s=timeout_s))

    def run_alone(
        self, tool: str, *args: object, stdin: str = "", timeout_s: float = TOOL_TIMEOUT_S
    ) -> ToolResult:
        """Run a tool in a process of its own."""
        done = subprocess.run(
            [
                *(str(self._java), *JVM_OPTIONS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
                *("-cp", f"{self._jars}/*", MAIN_CLASSES[tool], *map(str, args)),
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return ToolResult(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def close(self) -> None:
        self._worker.close()

    def __enter__(self) -> KafkaTools:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
