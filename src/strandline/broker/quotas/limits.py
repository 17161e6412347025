"""Which quota a client has: the most specific one that there is for its user and its client id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from strandline.controller.client_quotas import CLIENT_ID, USER
from strandline.controller.image import ClusterImage, QuotaKey

W = TypeVar("W")
# Users and client ids that are known at a time; client ids come from clients, who can make up as many as they like.
_KNOWN_MAX: Final = 10_000


def entities_of(user: str, client_id: str) -> Iterator[QuotaKey]:
    """The entities whose quota may hold for a client, the most specific first: Kafka's order."""
    for user_name in (user, None):
        for client_name in (client_id, None):
            yield ((CLIENT_ID, client_name), (USER, user_name))
        yield ((USER, user_name),)
    for client_name in (client_id, None):
        yield ((CLIENT_ID, client_name),)


class QuotaLimit(Generic[W]):
    """A quota, and what has been used of it by all who share it."""

    __slots__ = ("rate", "window")

    def __init__(self, rate: float, window: W) -> None:
        self.rate = rate
        self.window = window


class QuotaLimits(Generic[W]):
    """The limits of one kind of quota, by user and client id."""

    def __init__(self, image: ClusterImage, key: str, new_window: Callable[[], W]) -> None:
        self._image = image
        self._key = key
        self._new_window = new_window
        self._version = -1
        self._found: dict[tuple[str, str], QuotaLimit[W] | None] = {}
        # Those that share a quota by a user alone, or by a client id alone, have the other name empty.
        self._windows: dict[tuple[str, str], W] = {}

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
                return QuotaLimit(rate, self._window(shared))
        return None

    def _window(self, shared: tuple[str, str]) -> W:
        window = self._windows.get(shared)
        if window is None:
            if len(self._windows) >= _KNOWN_MAX:
                self._windows = {}
            window = self._windows[shared] = self._new_window()
        return window
