"""The real world of a client, found by its name from `client.world`: sockets, clocks, randomness and two threads.

It works on any asyncio loop, uvloop among them, and may be made once per client: threads are started when first used.
"""

from __future__ import annotations

from typing import Final

from strandline.client.world import ClientWorld
from strandline.node.clock import RealClock
from strandline.node.network import TcpNetwork
from strandline.node.random import RealRandom
from strandline.node.web import RealWeb
from strandline.node.workers import ThreadWorkers

# Off the loop a client only compresses big batches, and runs handlers of `DeadLetters` that are no coroutines.
WORKER_THREADS: Final = 2


def client_world() -> ClientWorld:
    workers = ThreadWorkers(WORKER_THREADS)
    return ClientWorld(
        network=TcpNetwork(),
        clock=RealClock(),
        random=RealRandom(),
        workers=workers,
        web=RealWeb(),
        close=workers.let_go,
    )
