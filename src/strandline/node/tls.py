"""TLS between a TCP connection and its peer: each takes it for the other (ADR 37).

1. To the TCP connection it is the peer: what is received goes into OpenSSL's memory, and comes out of it decrypted.
2. To the peer it is the connection: what is sent goes through OpenSSL, and leaves encrypted by the TCP connection.
3. A server's peer is connected when the TCP connection is, so that it counts and can be refused; nothing arrives before
   the handshake is complete. A client's peer is connected when the handshake is complete.
4. A handshake that fails, or takes too long, ends the connection with a TlsError that says why.
5. Regions of files are read, encrypted and sent piece by piece, as far as the socket takes them: sendfile would need
   TLS in the kernel.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections import deque
from contextlib import suppress
from typing import Any, Final, cast

from strandline.base.buffers import Buffer
from strandline.node.tls_contexts import TlsContext
from strandline.ports.disk import File
from strandline.ports.network import Connection, Peer
from strandline.ports.tls import TlsError, TlsInterrupted
from strandline.security.distinguished_name import distinguished_name

# Whole TLS records, and enough of them to make a system call worth its while.
_FILE_PIECE_BYTES: Final = 256 * 1024
# Nothing more is read of a file while the socket has not taken this.
_UNSENT_BYTES_HIGH: Final = 256 * 1024
# As much of a file is sent before others have their turn.
_TURN_BYTES_MAX: Final = 1024 * 1024
_HANDSHAKE_RECORD: Final = 0x16
_ALERT_RECORD: Final = 0x15

# Received bytes are copied out of it before anything else is received, so that all connections share it.
_received = memoryview(bytearray(256 * 1024))


class _Region:
    __slots__ = ("file", "left", "position")

    def __init__(self, file: File, position: int, left: int) -> None:
        self.file = file
        self.position = position
        self.left = left


class TlsConnection:
    """A peer of a TCP connection, and the connection of a peer."""

    def __init__(self, peer: Peer, tls: TlsContext, host: str | None) -> None:
        """`host` is the name that the server's certificate must have; None on the server's side."""
        self._peer = peer
        self._is_server = host is None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = tls.context.wrap_bio(
            self._incoming, self._outgoing, server_side=self._is_server, server_hostname=host
        )
        self._timeout_s = tls.settings.handshake_timeout_s
        self._tcp: Connection | None = None
        self._queue: deque[Buffer | _Region] = deque()
        self._queued_bytes = 0
        self._is_established = False
        self._is_paused = False
        self._is_closing = False
        self._has_received = False
        self._timer: asyncio.TimerHandle | None = None
        self._failure: TlsError | None = None
        self.handshake: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # To the TCP connection: a peer

    def connected(self, connection: Connection) -> None:
        self._tcp = connection
        self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._overdue)
        if self._is_server:
            self._peer.connected(self)
        else:
            self._shake_hands()

    def buffer(self, size_hint: int = -1) -> memoryview:
        return _received

    def received(self, size: int) -> None:
        if not self._has_received:
            self._has_received = True
            if _received[0] not in (_HANDSHAKE_RECORD, _ALERT_RECORD):
                self._fail(TlsError(_plain_text(is_server=self._is_server)))
                return
        self._incoming.write(_received[:size])
        if not self._is_established:
            self._shake_hands()
        if self._is_established:
            self._decrypt()

    def drained(self) -> None:
        if self._queue:
            self._send_queue()
        if not self._queue and self._tcp is not None and not self._tcp.unsent_bytes and not self._is_closing:
            self._peer.drained()

    def lost(self, error: Exception | None) -> None:
        self._tcp = None
        self._end_timer()
        self._drop_queue()
        if not self._is_established and self._failure is None:
            self._failure = TlsInterrupted(
                "the other side closed the connection during the TLS handshake"
                + ("" if self._is_server else ": is the port one that speaks TLS (SSL or SASL_SSL)?")
            )
        if not self.handshake.done():
            if self._is_server:
                self.handshake.cancel()
            else:
                self.handshake.set_exception(self._failure or TlsInterrupted("the connection was lost"))
        if self._is_server or self._is_established:
            self._peer.lost(self._failure or error)

    # To the peer: a connection

    @property
    def peer_address(self) -> str:
        return "gone" if self._tcp is None else self._tcp.peer_address

    @property
    def peer_subject(self) -> str | None:
        """The distinguished name in the certificate of the other side; None where it showed none."""
        certificate = self._ssl.getpeercert() if self._is_established else None
        return distinguished_name(certificate["subject"]) if certificate else None  # type: ignore[arg-type]

    @property
    def tls_version(self) -> str | None:
        return self._ssl.version()

    @property
    def unsent_bytes(self) -> int:
        return self._queued_bytes + (0 if self._tcp is None else self._tcp.unsent_bytes)

    def send(self, data: Buffer) -> None:
        if self._tcp is None or self._is_closing:
            return
        if self._queue:
            self._queue.append(data)
            self._queued_bytes += len(data)
        else:
            self._encrypt(data)

    def send_file(self, file: File, position: int, size: int) -> None:
        if self._tcp is None or self._is_closing:
            return
        file.retain()
        self._queue.append(_Region(file, position, size))
        self._queued_bytes += size
        if len(self._queue) == 1:
            self._send_queue()

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._tcp is not None:
            self._tcp.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._tcp is not None:
            self._tcp.resume_reading()
            if self._incoming.pending or (self._is_established and self._ssl.pending()):
                asyncio.get_running_loop().call_soon(self._go_on)

    def close(self) -> None:
        self._is_closing = True
        if not self._queue:
            self._say_goodbye()

    def abort(self) -> None:
        self._is_closing = True
        self._drop_queue()
        if self._tcp is not None:
            self._tcp.abort()

    # The handshake

    def _shake_hands(self) -> None:
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:  # of certificates too
            self._flush()  # the alert that tells the other side
            self._fail(TlsError(_explained(error, is_server=self._is_server)))
            return
        self._is_established = True
        self._end_timer()
        self._flush()
        if not self._is_server:
            self._peer.connected(self)
        if not self.handshake.done():
            self.handshake.set_result(None)

    def _overdue(self) -> None:
        if self._is_paused:  # the peer does not read yet: that is not the other side's fault
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._overdue)
            return
        self._fail(TlsInterrupted(f"the TLS handshake was not complete after {self._timeout_s:g} s"))

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fail(self, error: TlsError) -> None:
        self._failure = self._failure or error
        self._is_closing = True
        self._drop_queue()
        if self._tcp is not None:
            self._tcp.close()

    # Receiving

    def _go_on(self) -> None:
        """Goes on after a pause: with the handshake, or with bytes that were received and not taken yet."""
        if self._tcp is None or self._is_paused or self._is_closing:
            return
        if not self._is_established:
            self._shake_hands()
        if self._is_established:
            self._decrypt()

    def _decrypt(self) -> None:
        read, buffer, received = self._ssl.read, self._peer.buffer, self._peer.received
        try:
            while not self._is_paused and self._tcp is not None and not self._is_closing:
                room = buffer()
                size = cast(int, read(len(room), room))
                if size == 0:  # the other side says that nothing more comes
                    self.close()
                    break
                received(size)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._flush()
            self._fail(TlsError(_explained(error, is_server=self._is_server)))
            return
        if self._outgoing.pending:
            self._flush()

    # Sending

    def _encrypt(self, data: Buffer) -> None:
        try:
            written = self._ssl.write(data)
            if written < len(data):
                rest = memoryview(data)
                while written < len(data):
                    written += self._ssl.write(rest[written:])
        except ssl.SSLError as error:
            self._fail(TlsError(_explained(error, is_server=self._is_server)))
            return
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending and self._tcp is not None:
            self._tcp.send(self._outgoing.read())

    def _send_queue(self) -> None:
        """Sends what waits, as far as the socket takes it."""
        sent = 0
        while self._queue and self._tcp is not None:
            if self._tcp.unsent_bytes > _UNSENT_BYTES_HIGH:
                return  # `drained` comes
            if sent >= _TURN_BYTES_MAX:
                asyncio.get_running_loop().call_soon(self.drained)
                return
            first = self._queue[0]
            if not isinstance(first, _Region):
                self._queue.popleft()
                self._queued_bytes -= len(first)
                sent += len(first)
                self._encrypt(first)
                continue
            try:
                piece = first.file.read_at(first.position, min(first.left, _FILE_PIECE_BYTES))
                if not piece:
                    raise OSError(errno.EIO, "the file is shorter than the region that was promised")
            except OSError:
                self.abort()
                return
            first.position += len(piece)
            first.left -= len(piece)
            self._queued_bytes -= len(piece)
            sent += len(piece)
            if not first.left:
                self._queue.popleft()
                first.file.close()
            self._encrypt(piece)
        if self._is_closing:
            self._say_goodbye()

    def _drop_queue(self) -> None:
        for item in self._queue:
            if isinstance(item, _Region):
                item.file.close()
        self._queue.clear()
        self._queued_bytes = 0

    def _say_goodbye(self) -> None:
        """Tells the other side that nothing is missing, and closes once that is sent."""
        if self._tcp is None:
            return
        if self._is_established:
            with suppress(ssl.SSLError):  # the other side has not said so itself yet, and need not
                self._ssl.unwrap()
            self._flush()
        self._tcp.close()


def _plain_text(*, is_server: bool) -> str:
    if is_server:
        return (
            "plain text came to a port that speaks TLS: set security.protocol=SSL or SASL_SSL in the client"
        )
    return "the port does not speak TLS: set security.protocol=PLAINTEXT or SASL_PLAINTEXT, or choose a TLS listener"


def _explained(error: ssl.SSLError, *, is_server: bool) -> str:
    """Returns a sentence that explains an error, with advice for the errors that users meet most."""
    reason = str(error.reason or error)
    if isinstance(error, ssl.SSLCertVerificationError):
        who = "the client's" if is_server else "the broker's"
        store = "ssl.truststore.location"
        return f"{who} certificate is refused: {error.verify_message} (see {store} and the names in the certificate)"
    advice = _ADVICE.get(reason)
    return f"TLS failed: {reason}" + (f": {advice}" if advice else "")


_ADVICE: Final[dict[str, Any]] = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client showed no certificate, and ssl.client.auth=required",
    "NO_SHARED_CIPHER": "both sides have no cipher in common; see ssl.cipher.suites",
    "UNSUPPORTED_PROTOCOL": "both sides have no version of TLS in common; see ssl.enabled.protocols",
    "TLSV1_ALERT_PROTOCOL_VERSION": "both sides have no version of TLS in common; see ssl.enabled.protocols",
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust the authority of our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the other side refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the other side refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the broker wants a client certificate; set ssl.keystore.location",
    "TLSV1_ALERT_DECRYPT_ERROR": "the other side could not verify our certificate",
}


def secure(peer: Peer, tls: object, host: str | None) -> TlsConnection:
    """Returns the peer that a TCP connection gets if the bytes of its own peer are to be encrypted."""
    assert isinstance(tls, TlsContext)
    return TlsConnection(peer, tls, host)
