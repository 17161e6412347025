"""Rates of new connections: `max.connection.creation.rate` of broker and listener, and quotas of addresses.

A connection over the rate of the broker or its listener is served later. One over the quota of its address
(`connection_creation_rate`, KIP-612) is closed, but only when another would be within the quota: this slows down a
client that tries again at once.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from strandline.base.quota_windows import MeanWindow, RateWindow
from strandline.broker.node_context import NodeContext
from strandline.config.listener_values import ListenerValues
from strandline.controller.client_quotas import CONNECTION_CREATION_RATE, IP

_RATE_KEY: Final = "max.connection.creation.rate"
_UNLIMITED: Final = 2**31 - 1
# The longest wait of a connection: Kafka's acceptor sleeps for no longer than a window either.
_DELAY_S_MAX: Final = 1.0
_ADDRESSES_MAX: Final = 10_000
# Kafka's `metrics.sample.window.ms` and `metrics.num.samples`.
_MEAN: Final = (30.0, 2)


class Admission(NamedTuple):
    """The wait of a new connection, and whether it is closed after it."""

    delay_s: float
    is_refused: bool


AT_ONCE: Final = Admission(0.0, False)


class ConnectionRates:
    def __init__(self, node: NodeContext) -> None:
        config = node.config
        self._node = node
        self._new_window = partial(
            RateWindow, float(config.int("quota.window.size.seconds")), config.int("quota.window.num")
        )
        self._by_place: dict[str, RateWindow] = {}  # by name of the listener; the empty name is for all
        self._by_address: dict[str, RateWindow] = {}
        # Seconds by listener: how long connections waited for its rate or the broker's, and for the quota of their
        # address.
        self.delays: dict[str, MeanWindow] = {}
        self.address_delays: dict[str, MeanWindow] = {}

    def admit(self, listener: str, address: str, *, is_protected: bool) -> Admission:
        """Counts a new connection. Brokers that have a listener of their own do not wait for clients."""
        now = self._node.clock.monotonic()
        refused_s = self._by_quota(address, now)
        if refused_s > 0:
            delay_s = min(refused_s, _DELAY_S_MAX)
            self.address_delays.setdefault(listener, MeanWindow(*_MEAN)).record(delay_s, now)
            return Admission(delay_s, True)
        values = ListenerValues(self._node.configs, listener)
        rates = [(listener, values.value(_RATE_KEY))]
        if not is_protected:
            rates.append(("", self._node.configs.broker_value(_RATE_KEY)))
        delay_s = min(max(self._by_rate(place, rate, now) for place, rate in rates), _DELAY_S_MAX)
        if delay_s <= 0:
            return AT_ONCE
        self.delays.setdefault(listener, MeanWindow(*_MEAN)).record(delay_s, now)
        return Admission(delay_s, False)

    def _by_rate(self, place: str, rate: object, now: float) -> float:
        if not isinstance(rate, int) or rate >= _UNLIMITED or rate <= 0:
            return 0.0
        window = self._by_place.setdefault(place, self._new_window())
        window.record(1, now)
        return window.throttle_s(rate, now)

    def _by_quota(self, address: str, now: float) -> float:
        quotas = self._node.image.client_quotas
        if not quotas:
            return 0.0
        own = quotas.get(((IP, address),), {}).get(CONNECTION_CREATION_RATE)
        rate = own if own is not None else quotas.get(((IP, None),), {}).get(CONNECTION_CREATION_RATE)
        if rate is None:
            return 0.0
        if len(self._by_address) >= _ADDRESSES_MAX:
            self._by_address = {}
        window = self._by_address.setdefault(address, self._new_window())
        window.record(1, now)
        throttle_s = window.throttle_s(rate, now)
        if throttle_s > 0:
            window.record(-1, now)  # it is not served, so it does not count
        return throttle_s
