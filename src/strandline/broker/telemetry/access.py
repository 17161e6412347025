"""Metrics of authorization and quotas: those of StandardAuthorizer, and `kafka.server:type=Produce|Fetch|Request|…`.

Quotas have the names of jmx_exporter's own example: `kafka_server_quota_…{resource,user,clientId}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from strandline.broker.authorization.node_authorizer import NodeAuthorizer
from strandline.broker.node_context import NodeContext
from strandline.broker.quotas.client_quotas import ClientQuotas
from strandline.broker.quotas.connection_rates import ConnectionRates
from strandline.broker.quotas.limits import QuotaLimit, QuotaLimits
from strandline.broker.quotas.mutation_quota import MutationQuota
from strandline.telemetry.exposition import GAUGE, MANY, Families, Family, Sample, counter, gauge, labels

_AUTHORIZER: Final = "kafka_server_plugins_"
_QUOTA: Final = "kafka_server_quota_"
_SOCKETS: Final = "kafka_server_socket_server_metrics_"
_MS: Final = 1000
_W = TypeVar("_W")


class AccessCollector:
    def __init__(
        self,
        node: NodeContext,
        authorizer: NodeAuthorizer | None,
        quotas: ClientQuotas,
        mutations: MutationQuota | None,
        rates: ConnectionRates,
    ) -> None:
        """`authorizer` is None without an authorizer, `mutations` on a node without a controller."""
        self._node = node
        self._authorizer = authorizer
        self._quotas = quotas
        self._mutations = mutations
        self._rates = rates

    def node_families(self) -> Families:
        if self._authorizer is not None:
            yield from self._decisions(self._authorizer)
        yield from self._connections()
        yield None
        yield from self._clients()

    def _decisions(self, authorizer: NodeAuthorizer) -> Families:
        config = self._node.config
        role = "broker" if config.is_broker else "controller"
        of = labels(config="authorizer.class.name", **{"class": "StandardAuthorizer"}, role=role)
        counts = authorizer.decisions
        allowed, denied = counts.allowed_per_minute(), counts.denied_per_minute()
        for name, help_, value in (
            ("authorization_request_rate_per_minute", "Acts that were checked, a minute.", allowed + denied),
            ("authorization_allowed_rate_per_minute", "Acts that were allowed, a minute.", allowed),
            ("authorization_denied_rate_per_minute", "Acts that were denied, a minute.", denied),
            ("acls_total_count", "Rules that there are.", authorizer.rule_count),
        ):
            yield gauge(_AUTHORIZER + name, help_, None, (of, value))
        yield counter(
            "strandline_authorizations_total",
            "Acts that were checked, by result.",
            None,
            (labels(result="allowed"), counts.allowed),
            (labels(result="denied"), counts.denied),
        )

    def _connections(self) -> Families:
        now = self._node.clock.monotonic()
        for name, help_, delays in (
            (
                "connection_accept_throttle_time",
                "for the rate of the listener or the broker",
                self._rates.delays,
            ),
            (
                "ip_connection_accept_throttle_time",
                "for the quota of their address",
                self._rates.address_delays,
            ),
        ):
            samples = [(labels(listener=key), each.mean(now) * _MS) for key, each in delays.items()]
            yield Family(
                f"{_SOCKETS}{name}", GAUGE, f"Mean time that connections waited {help_}, in ms.", samples
            )

    def _clients(self) -> Families:
        now = self._node.clock.monotonic()
        quotas = self._quotas
        bytes_: list[Sample] = []
        throttles: list[Sample] = []
        for resource, limits in (("Produce", quotas.producers), ("Fetch", quotas.consumers)):
            bytes_ += [(of, limit.window.rate(now)) for of, limit in _named(resource, limits)]
            throttles += _throttles(resource, limits, now)
        requests = [(of, limit.window.rate(now)) for of, limit in _named("Request", quotas.requests)]
        throttles += _throttles("Request", quotas.requests, now)
        tokens: list[Sample] = []
        if self._mutations is not None:
            mutations = self._mutations.limits
            of_controller = _named("ControllerMutation", mutations)
            tokens = [(of, limit.window.tokens(limit.rate, now)) for of, limit in of_controller]
            throttles += _throttles("ControllerMutation", mutations, now)
        for name, help_, samples in (
            ("byte_rate", "Bytes a second of clients that have a quota.", bytes_),
            (
                "request_time",
                "Time of requests of clients that have a quota, in percent of the loop.",
                requests,
            ),
            ("tokens", "Changes of partitions that are left to clients that have a quota.", tokens),
            ("throttle_time", "Mean time for which clients over a quota were throttled, in ms.", throttles),
        ):
            yield Family(_QUOTA + name, GAUGE, help_, samples, MANY)


def _named(resource: str, limits: QuotaLimits[_W]) -> Iterator[tuple[str, QuotaLimit[_W]]]:
    for limit in limits.in_use():
        user, client_id = limit.shared
        named = {key: name for key, name in (("user", user), ("clientId", client_id)) if name}
        yield labels(resource=resource, **named), limit


def _throttles(resource: str, limits: QuotaLimits[_W], now: float) -> list[Sample]:
    return [(of, limit.throttle_times.mean(now) * _MS) for of, limit in _named(resource, limits)]
