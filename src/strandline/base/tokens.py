"""The handle by which a pure core names a request that waits for its response."""

from __future__ import annotations

# The shell finds the waiting request by it; a core does not read it.
Token = object
