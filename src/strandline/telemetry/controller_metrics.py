"""Metrics of the active controller: elections, and brokers whose heartbeats were missing."""

from __future__ import annotations

from strandline.telemetry.histogram import Histogram, RecentCounts


class ControllerMetrics:
    """The counters of one controller; they begin at 0 with its process."""

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
