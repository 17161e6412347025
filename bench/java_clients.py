"""Runs Apache Kafka's Java clients: ProducerPerformance, and a reader that assigns partitions.

Each runs in one JVM for the whole run, so that warm code is measured and not the start of a JVM. The producer
has the defaults of Apache Kafka (16 kB batches, 5 ms linger, 32 MB of memory, sticky partitions).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import tests.oracle
from bench.clients import Done, Work
from bench.measure import UsageMeter
from tests.oracle.java_worker import JavaWorker
from tests.oracle.kafka_tools import MAIN_CLASSES

STEP_WAIT_S_MAX = 300.0
# What bin/kafka-producer-perf-test.sh and kafka-run-class.sh pass.
JVM_OPTIONS = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
# Threads of the JVM itself neither begin nor end in a step, so that the one that does is the producer's sender.
STEADY_THREADS = ("-XX:-UseDynamicNumberOfCompilerThreads", "-XX:-UseDynamicNumberOfGCThreads")
PRODUCER = {"acks": "all", "enable.idempotence": "true", "batch.size": "16384", "linger.ms": "5"}

_TOOL_RUNNER = Path(tests.oracle.__path__[0]) / "java" / "ToolRunner.java"
_READER = Path(__file__).parent / "java" / "AssignedReader.java"
# ProducerPerformance ends with a line that says how many records it sent, and how many in a second.
_SUMMARY = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)


class _WarmWorker(JavaWorker):
    """A worker whose JVM compiles its hot code; that of the tests is set to start quickly."""

    def __init__(self, *, java: Path, jars: Path, source: Path) -> None:
        super().__init__(java=java, jars=jars, source=source)
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        self._command = [str(java), *JVM_OPTIONS, *STEADY_THREADS, quiet, "-cp", f"{jars}/*", str(source)]

    @property
    def pid(self) -> int:
        return self._running().pid

    def measured(self, question: Mapping[str, Any]) -> tuple[dict[str, Any], UsageMeter]:
        """Returns the response, and a meter that was started before the request."""
        meter = UsageMeter(self.pid)
        return self.call(question, timeout_s=STEP_WAIT_S_MAX), meter


class JavaClients:
    name = "Java"

    def __init__(self, *, java: Path, jars: Path) -> None:
        self._producer = _WarmWorker(java=java, jars=jars, source=_TOOL_RUNNER)
        self._consumer = _WarmWorker(java=java, jars=jars, source=_READER)

    def pids(self) -> Sequence[int]:
        return (self._producer.pid, self._consumer.pid)

    def produce(self, work: Work) -> Done:
        settings = PRODUCER | {"compression.type": work.codec}
        arguments = [
            *("--bootstrap-server", work.bootstrap, "--topic", work.topic),
            *("--num-records", str(work.record_count), "--throughput", "-1"),
            *("--payload-file", str(work.payloads), "--reporting-interval", "3600000"),
            *("--command-property", *(f"{key}={value}" for key, value in settings.items())),
        ]
        question = {"main": MAIN_CLASSES["ProducerPerformance"], "args": arguments, "stdin": ""}
        answer, meter = self._producer.measured(question)
        usage = meter.read()
        summary = _SUMMARY.search(answer["stdout"])
        if answer["exit_code"] != 0 or summary is None:
            raise RuntimeError(f"ProducerPerformance failed:\n{answer['stdout']}\n{answer['stderr']}")
        assert int(summary[1]) == work.record_count, f"{summary[1]} of {work.record_count} records were sent"
        elapsed_s = work.record_count / float(summary[2])
        return Done(
            record_count=work.record_count,
            elapsed_s=elapsed_s,
            cpu_s=usage.cpu_s,
            busiest_thread_s=usage.busiest_thread_s,
        )

    def consume(self, work: Work) -> Done:
        question = {
            "bootstrap": work.bootstrap,
            "topic": work.topic,
            "partitions": work.partitions,
            "records": work.record_count,
        }
        answer = self._consumer.call(question, timeout_s=STEP_WAIT_S_MAX)
        if "error" in answer:
            raise RuntimeError(f"the Java reader failed: {answer['error']}")
        assert answer["records"] == work.record_count, answer
        assert answer["bytes"] == work.record_count * work.record_bytes, answer
        return Done(
            record_count=work.record_count,
            elapsed_s=answer["elapsed_s"],
            cpu_s=answer["cpu_s"],
            busiest_thread_s=answer["thread_cpu_s"],
        )

    def close(self) -> None:
        self._producer.close()
        self._consumer.close()

    def __enter__(self) -> JavaClients:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
