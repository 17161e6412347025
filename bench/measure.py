"""Measures the cost of a process from /proc: CPU seconds of all threads and of the busiest one, and memory."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat after the command's name: user, system, and both of children that have ended.
_CPU_FIELDS = slice(11, 15)

QUIET_SHARE_MAX = 0.05
QUIET_WINDOW_S = 0.2
QUIET_WAIT_S_MAX = 5.0
# Above this the other programs of the machine are part of the result.
OTHERS_CORES_MAX = 0.25
OTHERS_WINDOW_S = 0.4


def cpu_seconds(pid: int) -> float:
    """Returns user and system time of all threads, and of children that have been waited for."""
    return _cpu(Path(f"/proc/{pid}/stat"))


def thread_cpu_seconds(pid: int) -> dict[int, float]:
    """Returns user and system time of each thread that is alive."""
    seconds = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            seconds[int(task.name)] = _cpu(task / "stat")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
    return seconds


def _cpu(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_CPU_FIELDS])) * _TICK_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The CPU time that a process used between two moments."""

    cpu_s: float
    busiest_thread_s: float


class UsageMeter:
    """Measures the CPU time of a process from the construction of the meter on.

    A thread that began and ended in between is gone from /proc, so all such threads count as one. In the Java producer
    that is the sender alone.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._threads = thread_cpu_seconds(pid)
        self._cpu_s = cpu_seconds(pid)

    def read(self) -> Usage:
        cpu_s = cpu_seconds(self._pid) - self._cpu_s
        threads = thread_cpu_seconds(self._pid)
        used = [seconds - self._threads.get(thread, 0.0) for thread, seconds in threads.items()]
        return Usage(cpu_s=cpu_s, busiest_thread_s=max([*used, cpu_s - sum(used)]))


class OthersMeter:
    """Measures the cores that programs outside of the benchmark use, from the construction of the meter on.

    This process, its children that have ended, and the named processes belong to the benchmark.
    """

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._others_s = self._read_s()
        self._begun_s = time.monotonic()

    def read(self) -> float:
        elapsed_s = time.monotonic() - self._begun_s
        return max(self._read_s() - self._others_s, 0.0) / elapsed_s

    def _read_s(self) -> float:
        own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        ours_s = sum(used.ru_utime + used.ru_stime for used in own)
        return _machine_busy_s() - ours_s - sum(map(cpu_seconds, self._pids))


def _machine_busy_s() -> float:
    """Returns user, nice, system and stolen time of all processors."""
    user, nice, system, _idle, _waiting, _irq, _soft_irq, stolen = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + stolen) * _TICK_S


def wait_until_others_are_quiet(wait_s_max: float) -> float:
    """Waits, up to a limit, until other programs use next to nothing of the machine; returns the time it took."""
    begun_s = time.monotonic()
    while time.monotonic() - begun_s < wait_s_max:
        meter = OthersMeter()
        time.sleep(OTHERS_WINDOW_S)
        if meter.read() <= OTHERS_CORES_MAX:
            break
    return time.monotonic() - begun_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    pss_bytes: int
    rss_bytes: int


def memory(pid: int) -> Memory:
    kilobytes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        key, _, value = line.partition(":")
        kilobytes[key] = int(value.split()[0])
    return Memory(pss_bytes=kilobytes["Pss"] * 1024, rss_bytes=kilobytes["Rss"] * 1024)


def wait_until_quiet(pid: int) -> None:
    """Waits, up to a limit, until the process has next to nothing to do. After the limit it is measured although
    busy."""
    deadline = time.monotonic() + QUIET_WAIT_S_MAX
    used_s = cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(QUIET_WINDOW_S)
        now_s = cpu_seconds(pid)
        if now_s - used_s <= QUIET_SHARE_MAX * QUIET_WINDOW_S:
            return
        used_s = now_s
