"""The type of objects that offer a contiguous buffer of bytes."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
