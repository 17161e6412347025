"""The acts of the active controller: elections, and brokers that it lost sight of."""

from __future__ import annotations

from strandline.telemetry.histogram import Histogram, RecentCounts


class ControllerMetrics:
    """Counters of one controller; they begin again with its process."""

    __slots__ = (
        "activations",
        "commits",
        "elections",
        "recent_elections",
        "sessions_expired",
        "unclean_elections",
    )

    def __init__(self) -> None:
        self.commits = Histogram()  # seconds from a decision until it was committed
        self.elections = Histogram()  # seconds until the elections of one decision were committed
        self.recent_elections = RecentCounts()
        self.unclean_elections = 0
        self.activations = 0
        self.sessions_expired = 0
