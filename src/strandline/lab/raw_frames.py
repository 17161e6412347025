"""Frames of bytes, for what no encoder would write: each sent as it is, each response as it came."""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.ports.network import Connection, Network
from strandline.rpc.frames import FrameReader

_RESPONSE_BYTES_MAX: Final = 16 * 1024 * 1024
_RESPONSE_SECONDS_MAX: Final = 60.0
CLOSED: Final = "the connection is closed"


class RawFrames:
    """One connection. It is the network's peer itself."""

    def __init__(self) -> None:
        self._frames = FrameReader(_RESPONSE_BYTES_MAX, trusts_sizes=True)
        self._response: asyncio.Future[bytes | None] | None = None
        self._connection: Connection | None = None
        self.buffer = self._frames.buffer

    @classmethod
    async def connect(cls, network: Network, host: str, port: int) -> RawFrames:
        made = cls()
        await network.connect(host, port, made)
        return made

    async def exchange(self, data: bytes) -> bytes | None:
        """Sends bytes, and returns the next response without its size: None if the node closes the connection, nothing
        if it does neither within a minute."""
        assert self._connection is not None
        self._response = asyncio.get_running_loop().create_future()
        self._connection.send(data)
        try:
            return await asyncio.wait_for(self._response, _RESPONSE_SECONDS_MAX)
        except TimeoutError:
            return b""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    # Called by the network

    def connected(self, connection: Connection) -> None:
        self._connection = connection

    def received(self, size: int) -> None:
        self._frames.received(size)
        while (frame := self._frames.next_frame()) is not None:
            self._complete(bytes(frame))
        if self._frames.growth_bytes:
            self._frames.grow()

    def drained(self) -> None:
        """Does nothing: nobody waits until the buffer is sent."""

    def lost(self, error: Exception | None) -> None:
        self._connection = None
        self._complete(None)

    def _complete(self, response: bytes | None) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_result(response)


def framed(content: bytes) -> bytes:
    """Returns the content with its size before it."""
    return len(content).to_bytes(4, "big") + content


def request_header(api_key: int, version: int, *, is_flexible: bool) -> bytes:
    """Returns the header of a request whose correlation id is 7 and whose client id is "raw"."""
    numbers = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + (7).to_bytes(4, "big")
    return numbers + b"\x00\x03raw" + (b"\x00" if is_flexible else b"")
