"""One end of a simulated connection: what waits to be sent, what is on its way, what has arrived and is not read.

The network (`network.SimulatedNetwork`) has the rules, and carries the bytes from one end to the other.
"""

from __future__ import annotations

import errno
from collections import deque
from contextvars import Context
from typing import Final, Protocol

from strandline.base.buffers import Buffer
from strandline.ports.disk import File
from strandline.ports.network import Peer
from strandline.sim.engine.loop import SimulatedLoop
from strandline.sim.engine.process_life import OWNER
from strandline.sim.random import Generator

SOCKET_BYTES: Final = 64 * 1024
DELAY_SECONDS: Final = (0.00005, 0.005)  # from one host's loopback to another site
_PUSH_BYTES_MIN: Final = SOCKET_BYTES // 4
_PIECE_BYTES: Final = (1, 7, 100, 1460, 16 * 1024, SOCKET_BYTES)


class Wire(Protocol):
    """The network as a connection sees it."""

    @property
    def loop(self) -> SimulatedLoop: ...

    def distance(self, way: tuple[str, str]) -> float:
        """Returns how many seconds bytes need from the first host to the second, on top of a connection's own delay."""

    def transmit(self, source: SimulatedConnection, when: float, data: bytes) -> None:
        """Brings `data` to the other end at that time."""

    def transmit_end(
        self, source: SimulatedConnection, when: float, target: SimulatedConnection, error: Exception | None
    ) -> None:
        """Tells `target` at that time that nothing more comes from `source`."""

    def forget(self, connection: SimulatedConnection) -> None:
        """Forgets a connection that is over."""

    def orphaned(self, connection: SimulatedConnection) -> None:
        """Notes that the machine at the other end of the connection has lost its power without a word."""


class SimulatedConnection:
    """One end of a connection."""

    def __init__(
        self,
        wire: Wire,
        *,
        host: str,
        peer_host: str,
        peer_address: str,
        peer: Peer,
        context: Context,
        chance: Generator,
        label: str,
    ) -> None:
        self._wire = wire
        self.host = host
        self.peer_host = peer_host
        self.way = (host, peer_host)
        self.peer_address = peer_address
        self.peer_subject: str | None = None
        self._peer = peer
        self.context = context
        self._life = context.get(OWNER)
        self._chance = chance
        self.label = label
        self._delay = chance.uniform(*DELAY_SECONDS)
        self._distance = wire.distance(self.way)
        self.other: SimulatedConnection
        self._unsent: deque[_Bytes | _Region] = deque()
        self.unsent_bytes = 0
        self._is_owed_drained = False
        self._first_piece = 0  # the size of the next piece, if it is drawn already
        self._taken_bytes = 0  # bytes that the operating system took and the other side has not read
        self._arrived: deque[bytes] = deque()  # bytes that arrived and are not read yet
        self._last_arrival = 0.0
        self._is_connected = False
        self._is_reading = True
        self._is_receiving = False  # a callback that hands over arrived bytes is on its way
        self._is_closing = False  # the connection ends once the unsent bytes are sent
        self._is_over = False  # for its owner; `lost` has been or is about to be called
        self._has_ended = False  # nothing more comes from the other side after the bytes that have arrived
        self._end_error: Exception | None = None

    # What the owner calls

    def send(self, data: Buffer) -> None:
        if self._is_closing or self._is_over:
            return
        size = len(data)
        if size and not self._unsent and self._taken_bytes + size <= SOCKET_BYTES:
            piece = self._piece_size()
            if size <= piece:  # nothing is in its way, as it mostly is
                self._taken_bytes += size
                self._wire.transmit(self, self._arrival(), bytes(data))
                return
            self._first_piece = piece
        if size:
            self._queue(_Bytes(data))

    def send_file(self, file: File, position: int, size: int) -> None:
        if self._is_closing or self._is_over:
            return
        self._queue(_Region(file, position, size))

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._receive_soon()

    def close(self) -> None:
        self._is_closing = True
        if not self._unsent:
            self._finish()

    def abort(self) -> None:
        self._is_closing = True
        if not self._is_over:
            self._drop_unsent()
            self._tell_end(self.other, ConnectionResetError(errno.ECONNRESET, "reset by the peer"))
            self._lose(None)

    # Sending

    def _queue(self, item: _Bytes | _Region) -> None:
        self._unsent.append(item)
        self.unsent_bytes += len(item)
        self._push()
        self._is_owed_drained = bool(self._unsent)

    def _push(self) -> None:
        """Hands the operating system as many bytes as it takes; waits until it takes a good number of them, because
        otherwise each step would move only a few."""
        if SOCKET_BYTES - self._taken_bytes < min(self.unsent_bytes, _PUSH_BYTES_MIN):
            return
        try:
            while self._unsent and self._taken_bytes < SOCKET_BYTES:
                first = self._unsent[0]
                piece, self._first_piece = self._first_piece or self._piece_size(), 0
                size = min(len(first), SOCKET_BYTES - self._taken_bytes, piece)
                data = first.take(size)
                self.unsent_bytes -= size
                self._taken_bytes += size
                if not len(first):
                    first.close()
                    self._unsent.popleft()
                self._wire.transmit(self, self._arrival(), data)
        except OSError:
            self._wire.loop.call_soon(self.abort, context=self.context)
            return
        if not self._unsent and self._is_owed_drained:
            self._is_owed_drained = False
            self._wire.loop.call_soon(self._drained, context=self.context)

    def _piece_size(self) -> int:
        # Most pieces are whole: a world of single bytes would be slow and would show nothing new.
        if self._chance.random() < 0.7:
            return SOCKET_BYTES
        return self._chance.choice(_PIECE_BYTES)

    def _arrival(self) -> float:
        arrival = self._wire.loop.now + self._distance + self._delay * (1.0 + self._chance.random() ** 3)
        if arrival > self._last_arrival:
            self._last_arrival = arrival
        return self._last_arrival

    def _drained(self) -> None:
        if self._is_closing:
            self._finish()
        elif not self._unsent and not self._is_over:
            self._peer.drained()

    def _finish(self) -> None:
        """Ends the connection after all is sent, and tells the other side."""
        if not self._is_over:
            self._tell_end(self.other, None)
            self._lose(None)

    def _tell_end(self, other: SimulatedConnection, error: Exception | None) -> None:
        self._wire.transmit_end(self, self._arrival(), other, error)

    def _drop_unsent(self) -> None:
        for item in self._unsent:
            item.close()
        self._unsent.clear()
        self.unsent_bytes = 0

    # Receiving

    def begin(self) -> None:
        """Begins the connection, in the life of its owner, which gets arriving bytes from now on."""
        self._is_connected = True
        self._peer.connected(self)
        self._receive_soon()

    def arrive(self, data: bytes) -> None:
        """Takes bytes that arrive. This runs in no process's life; an owner that is paused gets them later."""
        if self._is_over:
            return
        self._arrived.append(data)
        if self._is_receiving or not self._is_connected or not self._is_reading:
            return
        if self._life is None or (self._life.ended_because is None and not self._life.is_paused):
            self.context.run(self._receive)
        else:
            self._receive_soon()

    def arrive_end(self, error: Exception | None) -> None:
        if not self._is_over:
            self._has_ended = True
            self._end_error = error
            if error is not None:
                self._arrived.clear()  # a reset overtakes what was not read
            self._receive_soon()

    def _receive_soon(self) -> None:
        if self._is_receiving or self._is_over or not self._is_connected:
            return
        # An end that is no reset is noticed by reading.
        if (self._is_reading and (self._arrived or self._has_ended)) or self._end_error is not None:
            self._is_receiving = True
            self._wire.loop.call_soon(self._receive, context=self.context)

    def _receive(self) -> None:
        self._is_receiving = False
        if self._is_over or (not self._is_reading and self._end_error is None):
            return
        if self._arrived:
            data = self._arrived.popleft()
            room = self._peer.buffer()
            size = min(len(room), len(data))
            assert size > 0
            if size < len(data):
                self._arrived.appendleft(data[size:])
                data = data[:size]
            room[:size] = data
            self.other._was_read(size)
            self._peer.received(size)
        elif self._has_ended:
            self._drop_unsent()
            self._lose(self._end_error)
        self._receive_soon()

    def _was_read(self, size: int) -> None:
        self._taken_bytes -= size
        if self._unsent:
            self._wire.loop.call_soon(self._push, context=self.context)

    # The end

    def _lose(self, error: Exception | None) -> None:
        self._is_over = True
        self._arrived.clear()
        self._wire.forget(self)
        self._wire.loop.call_soon(self._peer.lost, error, context=self.context)

    def owner_died(self) -> None:
        """Ends the connection of a process that has died, whose socket the operating system closes."""
        if not self._is_over:
            self._is_over = True
            self._drop_unsent()
            self._wire.forget(self)
            self._tell_end(self.other, None)

    def host_lost_power(self) -> None:
        """Ends the connection when its host loses power; nobody is told."""
        if not self._is_over:
            self._is_over = True
            self._drop_unsent()
            self._wire.forget(self)
            self._wire.orphaned(self.other)

    def break_now(self, error: Exception) -> None:
        """Breaks the connection for both sides at once."""
        self.arrive_end(error)
        self.other.arrive_end(error)


class _Region:
    """A part of a file that waits to be sent."""

    __slots__ = ("_file", "_position", "_size")

    def __init__(self, file: File, position: int, size: int) -> None:
        file.retain()
        self._file = file
        self._position = position
        self._size = size

    def __len__(self) -> int:
        return self._size

    def take(self, size: int) -> bytes:
        data = self._file.read_at(self._position, size)
        if len(data) < size:
            raise OSError(errno.EIO, "the file is shorter than the region that was promised")
        self._position += size
        self._size -= size
        return data

    def close(self) -> None:
        self._file.close()


class _Bytes:
    __slots__ = ("_data",)

    def __init__(self, data: Buffer) -> None:
        self._data = bytes(data)

    def __len__(self) -> int:
        return len(self._data)

    def take(self, size: int) -> bytes:
        data, self._data = self._data[:size], self._data[size:]
        return data

    def close(self) -> None:
        pass
