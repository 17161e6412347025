"""Connections. A peer sees bytes in order; nothing here knows of requests.

Receiving is by buffer: `Peer.buffer()` says where the next bytes may go, `Peer.received(n)` that n arrived, so a
large request is received straight into its final place. Sending is in order across `send` and `send_file`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from strandline.base.buffers import Buffer
from strandline.ports.disk import File
from strandline.ports.tls import Tls, TlsSettings


class UnresolvedHostError(OSError):
    """A host's name has no address, as far as can be found out now."""


class Connection(Protocol):
    @property
    def peer_address(self) -> str: ...

    @property
    def peer_subject(self) -> str | None:
        """The distinguished name in the other side's certificate; None without TLS, and where it showed none."""
        ...

    def send(self, data: Buffer) -> None: ...

    def send_file(self, file: File, position: int, size: int) -> None:
        """Sends a region of a file, and retains the file for as long as that takes. Raises OSError if it cannot be read
        now; if that turns out later, the connection ends."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """The bytes that were handed over and not yet taken by the operating system."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """After what has been handed over is sent."""
        ...

    def abort(self) -> None:
        """Ends the connection at once; what was not sent is dropped."""
        ...


class Peer(Protocol):
    def connected(self, connection: Connection) -> None: ...

    def buffer(self, size_hint: int = -1) -> memoryview:
        """Where the next received bytes go; never empty. Loops say how many they would like to have room for."""
        ...

    def received(self, size: int) -> None: ...

    def drained(self) -> None:
        """Everything handed over has been taken by the operating system after it once had not."""
        ...

    def lost(self, error: Exception | None) -> None: ...


class ListeningSocket(Protocol):
    @property
    def port(self) -> int:
        """The real one, also where 0 was asked for."""
        ...

    def close(self) -> None: ...


class Network(Protocol):
    async def listen(
        self, host: str, port: int, accept: Callable[[], Peer], tls: Tls | None = None
    ) -> ListeningSocket: ...

    async def connect(self, host: str, port: int, peer: Peer, tls: Tls | None = None) -> None:
        """Raises OSError if nobody answers there, UnresolvedHostError if it cannot be known where that is, and TlsError
        if the handshake fails."""
        ...

    def tls(self, settings: TlsSettings, *, is_server: bool) -> Tls:
        """A TLS context for a listener, or for connections to one; raises TlsError if the settings cannot be used."""
        ...
