"""The traffic of connections to other nodes."""

from __future__ import annotations


class Traffic:
    """Requests, responses and their bytes, over all connections that share this object."""

    __slots__ = ("bytes_in", "bytes_out", "requests", "responses")

    def __init__(self) -> None:
        self.requests = 0
        self.responses = 0
        self.bytes_out = 0
        self.bytes_in = 0
