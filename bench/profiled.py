"""Shows where Strandline spends its time: `python -m bench.profiled` prints the dearest functions for some workloads.

Each step has its own broker, which samples itself every 4 ms of CPU time while the step runs. Time in C (system calls,
checksums, the encoder's struct calls) counts for the line of Python that called it. A profiler that hooks every call
would make small functions look dear; this one costs next to nothing, so its microseconds are real.

With the arguments `server --config FILE` this module is that broker, sampled from SIGUSR1 to SIGUSR2.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from bench import payloads, topics
from bench.clients import Client, Work
from bench.java_clients import JavaClients
from bench.librdkafka import Librdkafka
from bench.machine import freeze_source, prime_page_cache
from bench.measure import UsageMeter
from bench.peers import StrandlinePeer
from strandline.broker.server.dispatch import Dispatch
from strandline.broker.server.pending_response import Handled
from strandline.broker.server.request_context import RequestContext
from strandline.cli.main import main as strandline
from tests.oracle.fetch import JAVA, KAFKA_JARS

SAMPLES_NAME = "samples.json"
# The kernel's clock tick allows no shorter one.
INTERVAL_S = 0.004
SHOWN = 24
_WAIT_S_MAX = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    title: str
    client: str
    record_bytes: int
    partitions: int
    record_count: int


STEPS = (
    Step(
        title="(a) librdkafka", client="librdkafka", record_bytes=1000, partitions=6, record_count=3_000_000
    ),
    Step(
        title="(b) Java, 16 kB batches",
        client="Java",
        record_bytes=1000,
        partitions=6,
        record_count=1_000_000,
    ),
    Step(
        title="(b) Java, 16 kB batches", client="Java", record_bytes=1000, partitions=1, record_count=400_000
    ),
    Step(
        title="(c) librdkafka", client="librdkafka", record_bytes=100, partitions=6, record_count=10_000_000
    ),
)


class Sampler:
    """Counts the requests of this process, and samples the lines of Python that run."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._lines: Counter[tuple[str, str, int]] = Counter()
        self._requests: Counter[int] = Counter()
        handle = Dispatch.handle

        def counted(dispatch: Dispatch, context: RequestContext) -> Handled:
            self._requests[context.api_key] += 1
            return handle(dispatch, context)

        Dispatch.handle = counted  # type: ignore[method-assign,assignment]
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR1, self._begin)
        signal.signal(signal.SIGUSR2, self._end)

    def _begin(self, *_: object) -> None:
        self._lines.clear()
        self._requests.clear()
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        if frame is not None:
            code = frame.f_code
            self._lines[code.co_filename, code.co_qualname, frame.f_lineno] += 1

    def _end(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        lines = [[*line, count] for line, count in self._lines.most_common()]
        partial = self._output.with_suffix(".partial")
        partial.write_text(json.dumps({"lines": lines, "requests": self._requests}))
        partial.rename(self._output)


def profile(step: Step, client: Client, root: Path) -> None:
    directory = root / "broker"
    shutil.rmtree(directory, ignore_errors=True)
    peer = StrandlinePeer(directory, module="bench.profiled")
    peer.start()
    try:
        topics.create(peer, "profiled", partitions=step.partitions)
        values = root / f"{step.record_bytes}.txt"
        payloads.write_lines(values, payloads.incompressible(step.record_bytes))
        work = Work(
            bootstrap=peer.bootstrap,
            topic="profiled",
            partitions=step.partitions,
            record_count=step.record_count,
            record_bytes=step.record_bytes,
            payloads=values,
            codec="none",
        )
        prime_page_cache(root, step.record_bytes * step.record_count)
        for what, act, api_key in (("produce", client.produce, 0), ("consume", client.consume, 1)):
            samples = directory / SAMPLES_NAME
            samples.unlink(missing_ok=True)
            os.kill(peer.pid, signal.SIGUSR1)
            meter = UsageMeter(peer.pid)
            done = act(work)
            cpu_s = meter.read().cpu_s
            os.kill(peer.pid, signal.SIGUSR2)
            title = f"{step.title}, {step.record_bytes} B, {step.partitions} partitions: {what}"
            size_gb = step.record_bytes * step.record_count / 1e9
            print(
                f"\n## {title}\n{size_gb / done.elapsed_s * 1000:.0f} MB/s, {cpu_s / size_gb:.2f} s of CPU per GB"
            )
            _print(_read(samples), cpu_s, api_key)
    finally:
        peer.stop()


def _read(samples: Path) -> dict[str, dict[str, int] | list[list[str | int]]]:
    deadline = time.monotonic() + _WAIT_S_MAX
    while not samples.exists():
        assert time.monotonic() < deadline, "the broker left no samples"
        time.sleep(0.05)
    found: dict[str, dict[str, int] | list[list[str | int]]] = json.loads(samples.read_text())
    return found


def _print(found: dict[str, dict[str, int] | list[list[str | int]]], cpu_s: float, api_key: int) -> None:
    lines, requests = found["lines"], found["requests"]
    assert isinstance(lines, list)
    assert isinstance(requests, dict)
    by_function: Counter[str] = Counter()
    by_line: Counter[str] = Counter()
    for file, name, number, count in lines:
        short = "/".join(Path(str(file)).parts[-2:])
        by_function[f"{short} {name}"] += int(count)
        by_line[f"{short}:{number} {name}"] += int(count)
    total = sum(by_function.values())
    handled = requests.get(str(api_key), 0)
    print(f"{handled} requests, {cpu_s / handled * 1e6:.0f} µs of CPU each; {total} samples")
    for title, counted in (("function", by_function), ("line", by_line)):
        print(f"{'µs/request':>10} {'share':>6}  {title}")
        for where, count in counted.most_common(SHOWN):
            share = count / total
            print(f"{share * cpu_s / handled * 1e6:10.1f} {share:6.1%}  {where}")


def main() -> int:
    java, jars = JAVA.locate(), KAFKA_JARS.locate()
    assert java is not None, JAVA.why_missing
    assert jars is not None, KAFKA_JARS.why_missing
    root = Path(tempfile.mkdtemp(prefix="strandline-profile-"))
    freeze_source(root)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        clients: dict[str, Client] = {
            "librdkafka": Librdkafka(),
            "Java": stack.enter_context(JavaClients(java=java, jars=jars)),
        }
        for step in STEPS:
            profile(step, clients[step.client], root)
    return 0


if __name__ == "__main__":
    if "--config" in sys.argv:
        Sampler(Path(sys.argv[sys.argv.index("--config") + 1]).with_name(SAMPLES_NAME))
        sys.exit(strandline())
    sys.exit(main())
