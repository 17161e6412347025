"""Links to other nodes that are cut, one way or both, between processes on one machine.

A node knows which of its connections lead where only for those that it opened itself. So a cut of the way from A to B
is made at both ends: A sends nothing on its connections to B, and B reads nothing from its connections to A. Bytes that
were on their way arrive when the link is healed, as TCP would have it; a connection that is given up meanwhile ends for
its owner, and for the other side only then. New connections wait, because TCP needs both ways for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from strandline.base.buffers import Buffer
from strandline.node.network import TcpConnection, TcpNetwork
from strandline.ports.disk import File

Address = tuple[str, int]


class CutLinks:
    """The links of one node that are cut. Its networks ask before they connect."""

    def __init__(self, networks: Iterable[TcpNetwork]) -> None:
        self._networks = tuple(networks)
        self._cut: dict[Address, tuple[bool, bool]] = {}  # whether nothing goes out, whether nothing comes in
        self._held: dict[TcpConnection, HeldConnection] = {}
        self._healed: dict[Address, asyncio.Event] = {}

    def cut(self, addresses: Iterable[Address], *, outbound: bool, inbound: bool) -> None:
        """Cuts ways that are open; those that are cut already stay so."""
        for network in self._networks:
            network.links = self
        for address in addresses:
            was_out, was_in = self._cut.get(address, (False, False))
            self._cut[address] = (was_out or outbound, was_in or inbound)
            self._healed.setdefault(address, asyncio.Event())
            for network in self._networks:
                for connection in network.connections_to(*address):
                    self._hold(connection, *self._cut[address])

    def _hold(self, connection: TcpConnection, outbound: bool, inbound: bool) -> None:
        held = self._held.get(connection)
        if held is None:
            held = self._held[connection] = HeldConnection(connection)
        if outbound:
            held.stop_sending()
        if inbound:
            held.stop_reading()

    def heal(self, addresses: Iterable[Address] | None = None) -> None:
        """Opens both ways to these addresses, or to all."""
        healed = list(self._cut) if addresses is None else list(addresses)
        for address in healed:
            self._cut.pop(address, None)
            for network in self._networks:
                for connection in network.connections_to(*address):
                    held = self._held.pop(connection, None)
                    if held is not None:
                        held.let_go()
            event = self._healed.pop(address, None)
            if event is not None:
                event.set()
        if not self._cut:
            for network in self._networks:
                network.links = None

    async def until_healed(self, host: str, port: int) -> None:
        """Returns at once where the link is whole; a caller that has waited long enough gives up by itself."""
        event = self._healed.get((host, port))
        if event is not None:
            await event.wait()

    def status(self) -> list[dict[str, Any]]:
        return [
            {"address": f"{host}:{port}", "outbound": outbound, "inbound": inbound}
            for (host, port), (outbound, inbound) in self._cut.items()
        ]


class HeldConnection:
    """A connection over a cut link: methods of this object stand in front of the connection's own."""

    def __init__(self, connection: TcpConnection) -> None:
        self._connection = connection
        self._unsent: list[Callable[[], None]] = []
        self._is_ended = False
        self._peer_wants_to_read = True
        self._stand_in("close", self._end)
        self._stand_in("abort", self._end)

    def _stand_in(self, name: str, method: Callable[..., None]) -> None:
        vars(self._connection)[name] = method

    def stop_sending(self) -> None:
        self._stand_in("send", self._send)
        self._stand_in("send_file", self._send_file)

    def stop_reading(self) -> None:
        if "resume_reading" not in vars(self._connection):
            self._connection.pause_reading()
            self._stand_in("resume_reading", lambda: self._want_to_read(True))
            self._stand_in("pause_reading", lambda: self._want_to_read(False))

    def let_go(self) -> None:
        """Lets traffic through again: waiting bytes are sent, and a connection that was given up ends for the other
        side."""
        own = vars(self._connection)
        has_stopped_reading = "resume_reading" in own
        for name in ("send", "send_file", "close", "abort", "resume_reading", "pause_reading"):
            own.pop(name, None)
        if self._is_ended:
            self._connection.abort()
            return
        for send in self._unsent:
            send()
        if has_stopped_reading and self._peer_wants_to_read:
            self._connection.resume_reading()

    def _send(self, data: Buffer) -> None:
        kept = bytes(data)
        self._unsent.append(lambda: self._connection.send(kept))

    def _send_file(self, file: File, position: int, size: int) -> None:
        self._send(file.read_at(position, size))

    def _want_to_read(self, wants: bool) -> None:
        self._peer_wants_to_read = wants

    def _end(self) -> None:
        """Ends the connection for its owner, who gives it up and is told that it is lost. The other side hears
        nothing."""
        if not self._is_ended:
            self._is_ended = True
            self._unsent.clear()
            self.stop_sending()
            self.stop_reading()
            asyncio.get_running_loop().call_soon(self._connection.lose_quietly)
