"""What counts as bytes: anything that offers a contiguous buffer."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
