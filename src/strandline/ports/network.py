"""Connections. A peer gets bytes in order; nothing here knows about requests.

Bytes are received into buffers: `Peer.buffer()` returns the room for the next bytes, and `Peer.received(n)` notes that
n have arrived, so a large request is received straight into its final place. Bytes of `send` and `send_file` are sent
in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from strandline.base.buffers import Buffer
from strandline.ports.disk import File
from strandline.ports.tls import Tls, TlsSettings


class UnresolvedHostError(OSError):
    """The address of a host name could not be found."""


class Connection(Protocol):
    @property
    def peer_address(self) -> str: ...

    @property
    def peer_subject(self) -> str | None:
        """The distinguished name in the peer's certificate; None without TLS, or if the peer has sent none."""
        ...

    def send(self, data: Buffer) -> None: ...

    def send_file(self, file: File, position: int, size: int) -> None:
        """Sends a region of a file, and retains the file meanwhile. Raises OSError if it cannot be read now; if it
        cannot be read later, the connection ends."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """The bytes of `send` and `send_file` that the operating system has not taken yet."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Closes the connection once all bytes are sent."""
        ...

    def abort(self) -> None:
        """Ends the connection at once and drops unsent bytes."""
        ...


class Peer(Protocol):
    def connected(self, connection: Connection) -> None: ...

    def buffer(self, size_hint: int = -1) -> memoryview:
        """Returns the room for the next received bytes, which is never empty. `size_hint` is how much room the loop
        would like."""
        ...

    def received(self, size: int) -> None: ...

    def drained(self) -> None:
        """Notes that the operating system has taken all bytes, after some had to wait."""
        ...

    def lost(self, error: Exception | None) -> None: ...


class ListeningSocket(Protocol):
    @property
    def port(self) -> int:
        """The port in use, also if port 0 was requested."""
        ...

    def close(self) -> None: ...


class Network(Protocol):
    async def listen(
        self, host: str, port: int, accept: Callable[[], Peer], tls: Tls | None = None
    ) -> ListeningSocket: ...

    async def connect(self, host: str, port: int, peer: Peer, tls: Tls | None = None) -> None:
        """Connects a peer. Raises OSError if nothing listens there, UnresolvedHostError if the host has no known
        address, and TlsError if the handshake fails."""
        ...

    def tls(self, settings: TlsSettings, *, is_server: bool) -> Tls:
        """Returns a TLS context for a listener, or for connections to one; raises TlsError if the settings cannot be
        used."""
        ...
