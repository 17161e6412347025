"""The timeouts of a quorum node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    election_timeout_s: float = 1.0  # controller.quorum.election.timeout.ms; up to twice as much, by chance
    fetch_timeout_s: float = 2.0  # controller.quorum.fetch.timeout.ms
    election_backoff_s: float = 0.05  # the pause after an election that could not be won
    request_timeout_s: float = (
        2.0  # controller.quorum.request.timeout.ms; also the timeout of a change of voters
    )
    begin_interval_s: float = 1.0  # how often a leader repeats BeginQuorumEpoch to those that do not know it

    @property
    def check_quorum_s(self) -> float:
        """The time after which a leader resigns if a majority has not fetched from it."""
        return self.fetch_timeout_s * 1.5
