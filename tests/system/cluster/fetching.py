"""The longest wait of a follower's or consumer's fetch."""

from __future__ import annotations

# Somewhat more than replica.fetch.wait.max.ms.
FETCH_WAIT_S = 0.7
