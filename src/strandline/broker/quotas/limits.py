"""The quota of a client: the most specific one for its user and its client id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from strandline.base.quota_windows import MeanWindow
from strandline.controller.client_quotas import CLIENT_ID, USER
from strandline.controller.image import ClusterImage, QuotaKey

W = TypeVar("W")
# The number of users and client ids that are remembered: clients choose client ids, as many as they like.
_KNOWN_MAX: Final = 10_000
# Kafka's `metrics.sample.window.ms` and `metrics.num.samples`, over which throttle times are averaged.
_MEAN_WINDOW_S: Final = 30.0
_MEAN_SAMPLES: Final = 2


def entities_of(user: str, client_id: str) -> Iterator[QuotaKey]:
    """Yields the entities whose quota may apply to a client, the most specific first, in Kafka's order."""
    for user_name in (user, None):
        for client_name in (client_id, None):
            yield ((CLIENT_ID, client_name), (USER, user_name))
        yield ((USER, user_name),)
    for client_name in (client_id, None):
        yield ((CLIENT_ID, client_name),)


class QuotaLimit(Generic[W]):
    """A quota, its use by all clients that share it, and the seconds for which they were throttled."""

    __slots__ = ("rate", "shared", "throttle_times", "window")

    def __init__(self, rate: float, shared: tuple[str, str], window: W, throttle_times: MeanWindow) -> None:
        """`shared` has the user and the client id of the clients that share it; an empty name stands for all."""
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
        self._limits: dict[tuple[str, str], QuotaLimit[W] | None] = {}
        # For a quota that is shared by user alone, or by client id alone, the other name is empty.
        self._windows: dict[tuple[str, str], tuple[W, MeanWindow]] = {}

    def of(self, user: str, client_id: str) -> QuotaLimit[W] | None:
        """Returns the limit of a client; None if it has none."""
        if self._version != self._image.quotas_version:
            self._version = self._image.quotas_version
            self._limits = {}
        try:
            return self._limits[user, client_id]
        except KeyError:
            if len(self._limits) >= _KNOWN_MAX:
                self._limits = {}
            limit = self._limits[user, client_id] = self._find(user, client_id)
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
        """Returns the limits of clients that have sent requests, each once."""
        return {limit.shared: limit for limit in self._limits.values() if limit is not None}.values()

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
