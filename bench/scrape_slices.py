"""Measures how long a scrape holds up a node's loop at a time: `python -m bench.scrape_slices`, `--partitions N`,
`--groups N` of 50 partitions each.

The node runs in this process, as `strandline server` runs it: uvloop, the collector's thresholds, everything frozen
after the start. The CPU time of its thread is taken between any two callbacks of the loop, because other processes on
the machine change it little; wall time is shown beside it. Another process reads the page.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from statistics import median

from strandline.client import Admin, Producer
from strandline.node.loop import run
from strandline.testing.embedded import broker

SCRAPES = 30


class Slices:
    """A callback that runs in every iteration of the loop, and notes how long the other callbacks took."""

    def __init__(self) -> None:
        self.longest_cpu_s = 0.0
        self.longest_wall_s = 0.0
        self.collections_s = 0.0
        self._began = 0.0
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.collections_s += time.thread_time() - self._began

    async def measure(self) -> None:
        while True:
            wall, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0)
            self.longest_cpu_s = max(self.longest_cpu_s, time.thread_time() - cpu)
            self.longest_wall_s = max(self.longest_wall_s, time.perf_counter() - wall)


READER = """
import sys, time, urllib.request
for line in sys.stdin:
    began = time.perf_counter()
    size = len(urllib.request.urlopen(line.strip()).read())
    print(time.perf_counter() - began, size, flush=True)
"""


class Reader:
    """Reads pages in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @staticmethod
    async def start() -> Reader:
        pipe = asyncio.subprocess.PIPE
        return Reader(
            await asyncio.create_subprocess_exec(sys.executable, "-c", READER, stdin=pipe, stdout=pipe)
        )

    async def read(self, url: str) -> tuple[float, int]:
        """Returns the seconds and the bytes of a page."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{url}\n".encode())
        seconds, size = (await self._process.stdout.readline()).split()
        return float(seconds), int(size)

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scrape_slices", description=__doc__)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=0)
    options = parser.parse_args()
    partitions = options.partitions
    topics, each = max(partitions // 100, 1), min(partitions, 100)
    async with broker(metrics=True) as node:
        async with Admin(bootstrap_servers=node.bootstrap) as admin:
            for number in range(topics):
                await admin.create_topic(f"topic-{number}", partitions=each)
        async with Producer(bootstrap_servers=node.bootstrap) as producer:
            for number in range(topics):
                for partition in range(each):
                    await producer.send(f"topic-{number}", b"x", partition=partition)
            await producer.flush()
        async with Admin(bootstrap_servers=node.bootstrap) as admin:
            for number in range(options.groups):
                offsets = {(f"topic-{number % topics}", index): 0 for index in range(min(each, 50))}
                await admin.alter_group_offsets(f"group-{number}", offsets)
            if options.groups:
                await asyncio.sleep(15)  # the node looks at its groups every 10 s
                began, cpu_began = time.perf_counter(), time.thread_time()
                found = await admin.group_lag()
                print(
                    f"lag of {len(found)} groups over the client: {time.perf_counter() - began:.2f} s, "
                    f"{time.thread_time() - cpu_began:.2f} s of processor for client and broker together"
                )
        gc.collect()
        gc.freeze()
        reader = await Reader.start()
        await reader.read(node.metrics_url)
        taken, cpu, wall = [], [], []
        slices = Slices()
        turning = asyncio.create_task(slices.measure())
        for _ in range(SCRAPES):
            slices.longest_cpu_s = slices.longest_wall_s = 0.0
            seconds, size = await reader.read(node.metrics_url)
            taken.append(seconds)
            cpu.append(slices.longest_cpu_s)
            wall.append(slices.longest_wall_s)
            await asyncio.sleep(0.1)
        turning.cancel()
        await reader.end()
        print(f"{topics * each} partitions, {size / 1e6:.1f} MB, {SCRAPES} scrapes")
        print(f"a page takes {median(taken) * 1000:.0f} ms (median; {min(taken) * 1000:.0f} at best)")
        print(
            f"longest time of the loop at once: {median(cpu) * 1000:.1f} ms of processor (median), "
            f"{max(cpu) * 1000:.1f} at worst; by the wall {median(wall) * 1000:.1f} and {max(wall) * 1000:.1f}"
        )
        print(f"of which the collector took {slices.collections_s * 1000:.1f} ms in all scrapes together")
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main()))
