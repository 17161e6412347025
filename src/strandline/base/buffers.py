"""The type of everything that counts as bytes: any object that offers a contiguous buffer."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
