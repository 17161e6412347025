"""Damage that recovery may or may not notice."""

from __future__ import annotations

# The CRC covers neither base offset nor leader epoch; a change there that still ascends cannot be seen.
UNCHECKED = {*range(8), *range(12, 16)}
