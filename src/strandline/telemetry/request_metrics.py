"""The requests of a node: their number by API and version, the parts of their time, and their errors.

Most requests get their response as soon as they are read. For these one time is noted, which is both the handler's and
the total. For a request that waited, each part of its time is noted:

- queue: from its arrival until its handler was called
- local: in the handler
- remote: waiting for others: acknowledgements of replicas, records for a long poll
- response queue: until the responses to earlier requests of its connection had left
- send: until the operating system had taken the response
"""

from __future__ import annotations

from typing import Final

from strandline.telemetry.histogram import Histogram, RecentCounts

PARTS: Final = ("total", "queue", "local", "remote", "response_queue", "send", "throttle")

_FETCH: Final = 1
# The number of times after which they are put into histograms.
_NEW_MAX: Final = 512


class RequestTimes:
    """The times of all requests of one API.

    Requests only append to lists. The lists are put into histograms when they are long or when metrics are read: a few
    hundred sorted times cost less than as many single observations.
    """

    __slots__ = (
        "_at_once",
        "_at_once_new",
        "_locals_new",
        "_parts",
        "_queues_new",
        "_recent",
        "_remotes_new",
        "_totals_new",
        "errors",
        "followers",
        "name",
        "waiting",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting = 0  # requests that have no response yet
        self.errors: dict[int, int] = {}  # the number of responses by error code
        self.followers: RequestTimes | None = None  # the Fetch requests of other brokers
        # The times of requests that did not wait.
        self._at_once = Histogram()
        self._parts = {part: Histogram() for part in PARTS}
        self._recent = {part: RecentCounts() for part in PARTS}
        self._at_once_new: list[float] = []
        self._totals_new: list[float] = []
        self._locals_new: list[float] = []
        self._queues_new: list[float] = []
        self._remotes_new: list[float] = []

    def at_once(self, seconds: float) -> None:
        """Notes a request that did not wait: its handler ran on arrival and returned the response."""
        new = self._at_once_new
        new.append(seconds)
        if len(new) >= _NEW_MAX:
            self._at_once.observe_all(new)

    def waited(self, queue: float, local: float, remote: float, response_queue: float = 0.0) -> None:
        self._totals_new.append(queue + local + remote + response_queue)
        self._locals_new.append(local)
        if queue > 0:
            self._queues_new.append(queue)
        if remote > 0:
            self._remotes_new.append(remote)
        if response_queue > 0:
            self._parts["response_queue"].observe(response_queue)
        if len(self._totals_new) >= _NEW_MAX:
            self._settle()

    def _settle(self) -> None:
        """Puts new times into the histograms."""
        self._at_once.observe_all(self._at_once_new)
        self._parts["total"].observe_all(self._totals_new)
        self._parts["local"].observe_all(self._locals_new)
        self._parts["queue"].observe_all(self._queues_new)
        self._parts["remote"].observe_all(self._remotes_new)

    def add_error(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    def sent(self, seconds: float) -> None:
        """Notes a response that the operating system did not take at once."""
        self._parts["send"].observe(seconds)

    @property
    def count(self) -> int:
        self._settle()
        return self._at_once.count + self._parts["total"].count

    def part(self, name: str) -> Histogram:
        """Returns the histogram of one part of the time of every request; it is 0 for requests that did not wait."""
        count = self.count
        own = self._parts[name]
        if name in ("total", "local"):
            return own.plus(self._at_once)
        found = own.plus()
        found.counts[0] += max(count - own.count, 0)
        return found

    def recent(self, name: str, found: Histogram, now: float) -> list[int]:
        """Returns the counts of a part over the last minutes."""
        return self._recent[name].since(found.counts, now)


class VersionCount:
    """The number of requests of an API in one version."""

    __slots__ = ("count", "times")

    def __init__(self, times: RequestTimes) -> None:
        self.count = 0
        self.times = times


class RequestMetrics:
    """The requests of one node, by API key and version."""

    __slots__ = ("_names", "by_version", "times")

    def __init__(self, names: dict[int, str]) -> None:
        """`names` has the APIs of this node; requests of other APIs end their connection and are not counted."""
        self._names = names
        self.times: dict[int, RequestTimes] = {}
        self.by_version: dict[tuple[int, int], VersionCount] = {}

    def begin(self, api_key: int, api_version: int) -> VersionCount:
        """Begins the counts of an API and version, of which this is the first request."""
        times = self.times.get(api_key)
        if times is None:
            times = RequestTimes(self._names.get(api_key, "Unknown"))
            if api_key == _FETCH:  # their names are Kafka's
                times.name, times.followers = "FetchConsumer", RequestTimes("FetchFollower")
            if api_key in self._names:
                self.times[api_key] = times
        found = VersionCount(times)
        if api_key in self._names:
            self.by_version[api_key, api_version] = found
        return found
