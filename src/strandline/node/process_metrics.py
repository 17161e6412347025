"""The share of its machine that this process takes, by the names of Prometheus' client libraries.

Dashboards of Kafka read the JVM's names for memory, threads and collections: the same figures have those names too.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import threading
import time
from contextlib import suppress
from pathlib import Path

from strandline import __version__
from strandline.broker.telemetry.times import histogram_family
from strandline.telemetry.exposition import SUMMARY, Families, Family, counter, gauge, labels
from strandline.telemetry.histogram import Histogram

_PAGE_BYTES = resource.getpagesize()
# How often the loop is measured.
_TICK_S = 0.1


class ProcessMetrics:
    """Figures of the process; `close` stops measuring Python's collector."""

    def __init__(self) -> None:
        self._started_s = time.time()
        self._collections = 0
        self._collecting_s = 0.0
        self._collection_began = 0.0
        gc.callbacks.append(self._collected)
        self._loop_lag = Histogram()
        self._tick: asyncio.TimerHandle | None = None
        # The share of the time in which the loop's thread had nothing to do.
        self._looked_at = time.monotonic()
        self._busy_s = time.thread_time()
        self._idle = 1.0

    def start(self) -> None:
        """Measures from now on how late the loop comes to its timers."""
        loop = asyncio.get_running_loop()
        due = loop.time() + _TICK_S

        def tick() -> None:
            self._loop_lag.observe(max(loop.time() - due, 0.0))
            self.start()

        self._tick = loop.call_at(due, tick)

    def close(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
        with suppress(ValueError):
            gc.callbacks.remove(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collection_began = time.perf_counter()
        else:
            self._collections += 1
            self._collecting_s += time.perf_counter() - self._collection_began

    def families(self) -> Families:
        memory = _resident_bytes()
        yield gauge("process_resident_memory_bytes", "Memory of this process.", memory)
        yield gauge("process_virtual_memory_bytes", "Address space of this process.", _virtual_bytes())
        yield counter("process_cpu_seconds_total", "Processor time of this process.", time.process_time())
        yield gauge("process_open_fds", "Files and sockets that are open.", _open_files())
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield gauge("process_max_fds", "Files and sockets that may be open.", limit)
        yield gauge("process_start_time_seconds", "When the process started.", self._started_s)
        yield gauge("process_threads", "Threads of this process.", threading.active_count())
        yield gauge("strandline_build_info", "1, with the version.", None, (labels(version=__version__), 1))
        help_ = "Memory of this process. There is no JVM: dashboards of Kafka read this name."
        yield gauge("jvm_memory_used_bytes", help_, None, ('{area="heap"}', memory))
        help_ = "Threads of this process. There is no JVM: dashboards of Kafka read this name."
        yield gauge("jvm_threads_current", help_, threading.active_count())
        help_ = "Collections of Python's cyclic garbage. There is no JVM: dashboards of Kafka read this name."
        key = '{gc="python"}'
        samples = [(f"_sum{key}", self._collecting_s), (f"_count{key}", self._collections)]
        yield Family("jvm_gc_collection_seconds", SUMMARY, help_, samples)
        idle = self._idle_share()
        help_ = "Share of the time in which the node's loop had nothing to do, from 0 to 1."
        yield gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", help_, idle)
        yield gauge("kafka_network_socketserver_networkprocessoravgidle_percent", help_, idle)
        help_ = "How late the node's loop came to its timers, which is how long other work held it up."
        yield histogram_family("strandline_loop_lag_seconds", help_, [("", self._loop_lag)])
        yield from _disk_families()

    def _idle_share(self) -> float:
        """Returns the share of time in which the loop was idle since the last call, or the last share if that call was
        less than a second ago. It runs on the loop's thread."""
        now, busy = time.monotonic(), time.thread_time()
        if now - self._looked_at > 1.0:
            self._idle = min(max(1 - (busy - self._busy_s) / (now - self._looked_at), 0.0), 1.0)
            self._looked_at, self._busy_s = now, busy
        return round(self._idle, 4)


def _statm() -> list[int]:
    """Returns the number of pages of the address space, and of those in memory."""
    try:
        return [int(each) for each in Path("/proc/self/statm").read_text().split()]
    except OSError:
        return [0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _PAGE_BYTES]  # in bytes, as on macOS


def _resident_bytes() -> int:
    return _statm()[1] * _PAGE_BYTES


def _virtual_bytes() -> int:
    return _statm()[0] * _PAGE_BYTES


def _open_files() -> int:
    """Returns the number of open files. Since Linux 6.2 it is the directory's size; listing thousands of entries takes
    milliseconds."""
    for path in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            counted = os.stat(path).st_size if path.startswith("/proc") else 0
            return counted or len(os.listdir(path))
    return 0


def _disk_families() -> Families:
    """Returns the counters of bytes read from devices and written to them. Only Linux has these numbers."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return
    found = {key: int(value) for key, _, value in (line.partition(": ") for line in lines)}
    name = "kafka_server_kafkaserver_linux_disk_"
    yield gauge(
        f"{name}read_bytes", "Bytes that this process had read from devices.", found.get("read_bytes", 0)
    )
    yield gauge(
        f"{name}write_bytes", "Bytes that this process wrote to devices.", found.get("write_bytes", 0)
    )
