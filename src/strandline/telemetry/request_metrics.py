"""What a node's requests cost: how many of each API and version, where their time went, which errors they ended with.

Most requests are responded to as soon as they are read, and these pay for one observation: a time that is both the
handler's and the whole. Where a request waited, each part of its time is observed:

- queue: from its arrival until its handler was called
- local: in the handler
- remote: until others were ready: replicas that acknowledge, a long poll's records
- response queue: until the responses to earlier requests of its connection had left
- send: until the operating system had taken the response
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from strandline.telemetry.histogram import SECONDS, Histogram, RecentCounts

PARTS: Final = ("total", "queue", "local", "remote", "response_queue", "send", "throttle")

_FETCH: Final = 1


class RequestTimes:
    """The times of all requests of one API."""

    __slots__ = ("_at_once", "_parts", "_recent", "followers", "name", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting = 0  # requests that have no response yet
        self.followers: RequestTimes | None = None  # of Fetch requests, those of other brokers
        # Requests that waited for nothing.
        self._at_once = Histogram()
        self._parts = {part: Histogram() for part in PARTS}
        self._recent = {part: RecentCounts() for part in PARTS}

    def at_once(self, seconds: float) -> None:
        """A request that began when it arrived and was responded to by its handler."""
        found = self._at_once
        found.counts[bisect_left(SECONDS, seconds)] += 1
        found.sum += seconds

    def waited(self, queue: float, local: float, remote: float, response_queue: float = 0.0) -> None:
        parts = self._parts
        parts["total"].observe(queue + local + remote + response_queue)
        parts["local"].observe(local)
        if queue > 0:
            parts["queue"].observe(queue)
        if remote > 0:
            parts["remote"].observe(remote)
        if response_queue > 0:
            parts["response_queue"].observe(response_queue)

    def sent(self, seconds: float) -> None:
        """A response that the operating system did not take at once."""
        self._parts["send"].observe(seconds)

    @property
    def count(self) -> int:
        return self._at_once.count + self._parts["total"].count

    def part(self, name: str) -> Histogram:
        """One part of the times of every request: where a request did not wait it is 0."""
        own = self._parts[name]
        if name in ("total", "local"):
            return own.plus(self._at_once)
        found = own.plus()
        found.counts[0] += max(self.count - own.count, 0)
        return found

    def recent(self, name: str, found: Histogram, now: float) -> list[int]:
        """The counts of a part over the last minutes."""
        return self._recent[name].since(found.counts, now)


class VersionCount:
    """How many requests of an API came in one version."""

    __slots__ = ("count", "times")

    def __init__(self, times: RequestTimes) -> None:
        self.count = 0
        self.times = times


class RequestMetrics:
    """The requests of one node, by API key and version, and the errors in its responses."""

    __slots__ = ("_names", "by_version", "errors", "times")

    def __init__(self, names: dict[int, str]) -> None:
        """`names` has the APIs that are served; requests of any other end their connection and are not counted."""
        self._names = names
        self.times: dict[int, RequestTimes] = {}
        self.by_version: dict[tuple[int, int], VersionCount] = {}
        self.errors: dict[tuple[int, int], int] = {}  # by API key and error code

    def begin(self, api_key: int, api_version: int) -> VersionCount:
        """The counts of an API and version, of which this is the first request."""
        times = self.times.get(api_key)
        if times is None:
            times = RequestTimes(self._names.get(api_key, "Unknown"))
            if api_key == _FETCH:  # as Kafka names them
                times.name, times.followers = "FetchConsumer", RequestTimes("FetchFollower")
            if api_key in self._names:
                self.times[api_key] = times
        found = VersionCount(times)
        if api_key in self._names:
            self.by_version[api_key, api_version] = found
        return found

    def add_error(self, api_key: int, code: int, count: int = 1) -> None:
        place = (api_key, code)
        self.errors[place] = self.errors.get(place, 0) + count
