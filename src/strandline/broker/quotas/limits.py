"""Which quota a client has: the most specific one that there is for its user and its client id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from strandline.base.quota_windows import MeanWindow
from strandline.controller.client_quotas import CLIENT_ID, USER
from strandline.controller.image import ClusterImage, QuotaKey

W = TypeVar("W")
# Users and client ids that are known at a time; client ids come from clients, who can make up as many as they like.
_KNOWN_MAX: Final = 10_000
# Kafka's `metrics.sample.window.ms` and `metrics.num.samples`: over which throttle times are averaged.
_MEAN_WINDOW_S: Final = 30.0
_MEAN_SAMPLES: Final = 2


def entities_of(user: str, client_id: str) -> Iterator[QuotaKey]:
    """The entities whose quota may hold for a client, the most specific first: Kafka's order."""
    for user_name in (user, None):
        for client_name in (client_id, None):
            yield ((CLIENT_ID, client_name), (USER, user_name))
        yield ((USER, user_name),)
    for client_name in (client_id, None):
        yield ((CLIENT_ID, client_name),)


class QuotaLimit(Generic[W]):
    """A quota, what has been used of it by all who share it, and for how long they were throttled, in seconds."""

    __slots__ = ("rate", "shared", "throttle_times", "window")

    def __init__(self, rate: float, shared: tuple[str, str], window: W, throttle_times: MeanWindow) -> None:
        """`shared` has the user and the client id of those who share it, and an empty name for what may differ."""
        self.rate = rate
        self.shared = shared
        self.window = window
        self.throttle_times = throttle_times


class QuotaLimits(Generic[W]):
    """The limits of one kind of quota, by user and client id."""

    def __init__(self, image: ClusterImage, key: str, new_window: Callable[[], W]) -> None:
        self._image = image
        self._key = key
        self._new_window = new_window
        self._version = -1
        self._found: dict[tuple[str, str], QuotaLimit[W] | None] = {}
        # Those that share a quota by a user alone, or by a client id alone, have the other name empty.
        self._windows: dict[tuple[str, str], tuple[W, MeanWindow]] = {}

    def of(self, user: str, client_id: str) -> QuotaLimit[W] | None:
        """The limit of a client; None if it has none."""
        if self._version != self._image.quotas_version:
            self._version = self._image.quotas_version
            self._found = {}
        try:
            return self._found[user, client_id]
        except KeyError:
            if len(self._found) >= _KNOWN_MAX:
                self._found = {}
            limit = self._found[user, client_id] = self._find(user, client_id)
            return limit

    def _find(self, user: str, client_id: str) -> QuotaLimit[W] | None:
        quotas = self._image.client_quotas
        for entity in entities_of(user, client_id):
            rate = quotas.get(entity, {}).get(self._key)
            if rate is not None:
                kinds = [kind for kind, _ in entity]
                shared = (user if USER in kinds else "", client_id if CLIENT_ID in kinds else "")
                return QuotaLimit(rate, shared, *self._window(shared))
        return None

    def in_use(self) -> Iterable[QuotaLimit[W]]:
        """The limits of clients that have been here, each once."""
        return {limit.shared: limit for limit in self._found.values() if limit is not None}.values()

    def _window(self, shared: tuple[str, str]) -> tuple[W, MeanWindow]:
        windows = self._windows.get(shared)
        if windows is None:
            if len(self._windows) >= _KNOWN_MAX:
                self._windows = {}
            windows = self._windows[shared] = (
                self._new_window(),
                MeanWindow(_MEAN_WINDOW_S, _MEAN_SAMPLES),
            )
        return windows
