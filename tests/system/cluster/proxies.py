"""A network between nodes that can be cut: each listens for the others behind a proxy.

While a node is cut off nothing passes to it or from it: connections are neither refused nor closed, bytes wait as
TCP's do. Clients go past the proxies. Who opened a connection is in the client id of its first request; a probe does
not say, and what a node that is cut off probes is let through, which can only keep it where it is.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from strandline.testing.clusters import Cluster, free_ports

_OPENER = re.compile(rb"^(?:replica|broker|quorum)-(\d+)")
_CHUNK = 65536


class Network:
    """The proxies, on a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lonely: set[int] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def listen(self, port: int, target_port: int, node_id: int) -> None:
        async def start() -> None:
            server = await asyncio.start_server(
                lambda reader, writer: self._serve(reader, writer, target_port, node_id), "127.0.0.1", port
            )
            self._servers.append(server)

        asyncio.run_coroutine_threadsafe(start(), self._loop).result(60)

    def cut_off(self, node_id: int) -> None:
        self._lonely.add(node_id)

    def heal(self) -> None:
        self._lonely.clear()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target_port: int, node_id: int
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(4)
            first += await reader.readexactly(struct.unpack(">i", first)[0])
            opener = _OPENER.match(first[14:])
            ends = {node_id} | ({int(opener[1])} if opener else set())
            await self._pass(ends)
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", target_port)
            other_writer.write(first)
            await asyncio.gather(
                self._pump(reader, other_writer, ends), self._pump(other_reader, writer, ends)
            )
        writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ends: set[int]) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._pass(ends)
                writer.write(data)
                await writer.drain()
        await self._pass(ends)
        writer.close()

    async def _pass(self, ends: set[int]) -> None:
        while ends & self._lonely:
            await asyncio.sleep(0.01)

    def close(self) -> None:
        self.heal()

        async def end() -> None:
            for server in self._servers:
                server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


@contextmanager
def cluster_on_a_network(settings: dict[str, str]) -> Iterator[tuple[Cluster, Network]]:
    """Three nodes that reach each other through proxies only."""
    home = Path(tempfile.mkdtemp(prefix="strandline-network-"))
    cluster, network = Cluster(home, 3, settings), Network()
    ports = free_ports(9)
    voters = []
    for number, node in enumerate(cluster.nodes):
        internal, internal_proxy, controller_proxy = ports[number * 3 : number * 3 + 3]
        controller = int(node.settings["listeners"].rpartition(":")[2])
        network.listen(internal_proxy, internal, node.node_id)
        network.listen(controller_proxy, controller, node.node_id)
        voters.append(f"{node.node_id}@127.0.0.1:{controller_proxy}")
        node.settings["listeners"] += f",INTERNAL://127.0.0.1:{internal}"
        node.settings["advertised.listeners"] += f",INTERNAL://127.0.0.1:{internal_proxy}"
        node.settings["inter.broker.listener.name"] = "INTERNAL"
        node.settings["listener.security.protocol.map"] = (
            "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        )
    for node in cluster.nodes:
        node.settings["controller.quorum.voters"] = ",".join(voters)
    try:
        cluster.start()
        yield cluster, network
    finally:
        network.heal()
        cluster.stop()
        network.close()
        shutil.rmtree(home, ignore_errors=True)
