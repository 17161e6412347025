"""Prints how long brokers take to start, as JSON: the best of several, for other work on the machine adds to all."""

from __future__ import annotations

import asyncio
import json
import time

from strandline.testing import broker, cluster, running_broker

ROUNDS = 7


async def embedded_ms() -> float:
    began = time.perf_counter()
    async with broker():
        return (time.perf_counter() - began) * 1000


def process_s() -> float:
    began = time.perf_counter()
    with running_broker():
        return time.perf_counter() - began


def cluster_s() -> float:
    began = time.perf_counter()
    with cluster(nodes=3):
        return time.perf_counter() - began


if __name__ == "__main__":
    figures = {
        "embedded_ms": round(min(asyncio.run(embedded_ms()) for _ in range(ROUNDS)), 1),
        "process_s": round(min(process_s() for _ in range(ROUNDS)), 2),
        "cluster_s": round(min(cluster_s() for _ in range(ROUNDS)), 2),
    }
    print(json.dumps(figures))
