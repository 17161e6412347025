"""The networks by which this node connects to others: one for the brokers' listener, one for the controllers'."""

from __future__ import annotations

from typing import Final

from strandline.base.ids import uuid_text
from strandline.broker.security.start_checks import JAAS
from strandline.config import BrokerConfig, DynamicConfigs, InvalidConfig
from strandline.config.listener_values import ListenerValues
from strandline.ports.network import Network
from strandline.ports.random import Random
from strandline.ports.tls import Tls
from strandline.rpc.login import SecuredNetwork
from strandline.security.login import Login, login_of
from strandline.security.tls_settings import tls_settings

_INTER_BROKER: Final = "sasl.mechanism.inter.broker.protocol"
_CONTROLLER: Final = "sasl.mechanism.controller.protocol"


class NodeNetworks:
    """Networks with the encryption and logins that the listeners of other nodes need; the plain network if they need
    none."""

    def __init__(self, network: Network, configs: DynamicConfigs, random: Random) -> None:
        """Raises InvalidConfig and TlsError, which show no secret."""
        config = configs.static
        self._configs = configs
        self._random = random
        self._contexts: list[tuple[ListenerValues, Tls]] = []
        names = config.strings("controller.listener.names")
        self.to_brokers = self._network(network, config.inter_broker_listener_name, _INTER_BROKER)
        self.to_controllers = self._network(network, names[0] if names else "", _CONTROLLER)

    def with_sockets_of(self, network: Network) -> Network:
        """Returns the network to brokers, on sockets of another kind."""
        name = self._configs.static.inter_broker_listener_name
        return self._network(network, name, _INTER_BROKER)

    def follow_configs(self) -> None:
        """Uses the certificates of the present settings for new connections."""
        for values, tls in self._contexts:
            tls.replace(tls_settings(values.value, prefix=values.prefix))

    def reload_files(self) -> None:
        for _, tls in self._contexts:
            tls.reload()

    def _network(self, network: Network, listener: str, mechanism_key: str) -> Network:
        config = self._configs.static
        protocol = config.protocols.get(listener.upper(), "PLAINTEXT")
        if protocol == "PLAINTEXT" or not _has_others(config, mechanism_key):
            return network
        values = ListenerValues(self._configs, listener)
        tls = None
        if protocol.endswith("SSL"):
            tls = network.tls(tls_settings(values.value, prefix=values.prefix), is_server=False)
            self._contexts.append((values, tls))
        login = self._login(values, config.text(mechanism_key)) if protocol.startswith("SASL") else None
        return SecuredNetwork(network, tls, login, self._random)

    def _login(self, values: ListenerValues, mechanism: str) -> Login:
        key = values.mechanism_key(mechanism, JAAS)
        try:
            return login_of(mechanism, key, values.own_mechanism_text(mechanism, JAAS), self._nonce)
        except ValueError as error:
            raise InvalidConfig(key, None, f"This node cannot log in to the others: {error}") from None

    def _nonce(self) -> str:
        return uuid_text(self._random.uuid()) + uuid_text(self._random.uuid())


def _has_others(config: BrokerConfig, mechanism_key: str) -> bool:
    """Returns True if there are other nodes to log in to: a single node needs no credentials."""
    return len(config.strings("controller.quorum.voters")) != 1 or not config.is_controller
