"""The security of one listener: its TLS context, its mechanisms, and the exchange of each login."""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import Final

from strandline.base.ids import uuid_text
from strandline.broker.node_context import NodeContext
from strandline.broker.security.start_checks import plain_users
from strandline.broker.security.token_keys import TokenKeys
from strandline.config import InvalidConfig, Listener
from strandline.config.listener_values import ListenerValues
from strandline.ports.tls import Tls, TlsError, TlsSettings
from strandline.security.delegation_tokens import token_credential
from strandline.security.exchange import OAUTHBEARER, PLAIN, AuthenticationFailed, ServerExchange
from strandline.security.oauthbearer import OAuthBearerServer
from strandline.security.plain import PlainServer
from strandline.security.principal import ANONYMOUS, Principal, user
from strandline.security.principal_mapping import NoRuleMatches, map_name, parse_rules
from strandline.security.scram import TYPES, ScramServer, StoredCredential, TokenCredential
from strandline.security.tls_settings import client_auth, tls_settings

_RECEIVE_TIMEOUT: Final = "strandline.request.receive.timeout.ms"


class ListenerSecurity:
    """The security of one listener. It is made when the listener is opened; settings that may change are read for each
    login."""

    def __init__(self, node: NodeContext, listener: Listener, token_keys: TokenKeys) -> None:
        """Raises TlsError if the certificates cannot be used."""
        self._node = node
        self._token_keys = token_keys
        self.name = listener.name
        self.protocol = listener.protocol
        self._values = ListenerValues(node.configs, listener.name)
        self.authentication_timeout_s = node.config.int(_RECEIVE_TIMEOUT) / 1000
        self.has_sasl = listener.protocol.startswith("SASL")
        self.tls: Tls | None = None
        self._rules = parse_rules(str(self._values.value("ssl.principal.mapping.rules")))
        self._decoy = node.random.uuid() + node.random.uuid()
        if listener.protocol.endswith("SSL"):
            self.tls = node.network.tls(self._tls_settings(), is_server=True)

    async def prepare(self) -> None:
        """Reads what logins need, before the listener is opened; raises InvalidConfig if it cannot be read."""
        if self.has_sasl and OAUTHBEARER in self.mechanisms:
            await self._token_keys.load(self._values)

    def _tls_settings(self) -> TlsSettings:
        value = self._values.value
        # As in Kafka, a SASL listener requests certificates only if that is set for this listener itself.
        own_auth = f"{self._values.prefix}ssl.client.auth" in self._node.config.originals
        settings = tls_settings(
            value, prefix=self._values.prefix, handshake_timeout_s=self.authentication_timeout_s
        )
        auth = client_auth(value) if own_auth or not self.has_sasl else "none"
        return replace(settings, client_auth=auth)

    # TLS

    def principal_of_certificate(self, subject: str | None) -> Principal:
        """Returns the user of a client with this name in its certificate; raises AuthenticationFailed if no rule
        matches."""
        if subject is None:
            return ANONYMOUS
        try:
            return user(map_name(self._rules, subject))
        except NoRuleMatches as error:
            raise AuthenticationFailed(str(error)) from None

    def follow_configs(self) -> None:
        """Uses the certificates of the present settings for new connections."""
        if self.tls is not None:
            try:
                self.tls.replace(self._tls_settings())
            except TlsError as error:
                self._node.events.error("certificates not replaced", listener=self.name, error=error)

    def reload_files(self) -> None:
        """Reads certificates again whose files have changed."""
        if self.tls is None:
            return
        try:
            if self.tls.reload():
                self._node.events.info("certificates read again", listener=self.name)
        except TlsError as error:
            self._node.events.error("certificates not replaced", listener=self.name, error=error)

    # SASL

    @property
    def mechanisms(self) -> tuple[str, ...]:
        enabled = self._values.value("sasl.enabled.mechanisms")
        assert isinstance(enabled, tuple)
        return enabled

    @property
    def receive_bytes_max(self) -> int:
        """The largest message of a client that has not logged in."""
        return self._node.config.int("sasl.server.max.receive.size")

    @property
    def failure_delay_s(self) -> float:
        return self._node.config.int("connection.failed.authentication.delay.ms") / 1000

    def session_ms_max(self, mechanism: str) -> int:
        """Returns how long a login is valid; 0 is for ever."""
        value = self._values.mechanism_value(mechanism, "connections.max.reauth.ms")
        assert isinstance(value, int)
        return value

    def exchange(self, mechanism: str) -> ServerExchange:
        if mechanism == PLAIN:
            return PlainServer(self._is_valid)
        if mechanism == OAUTHBEARER:
            return OAuthBearerServer(self._token_keys.verifier(self._values))
        nonce = uuid_text(self._node.random.uuid()) + uuid_text(self._node.random.uuid())
        return ScramServer(
            mechanism,
            lambda name: self._scram(mechanism, name),
            lambda token_id: self._token(mechanism, token_id),
            nonce,
            self._decoy,
        )

    def _is_valid(self, name: str, password: str) -> bool:
        try:
            expected = plain_users(self._values).get(name)
        except InvalidConfig as error:
            self._node.events.error("users of PLAIN cannot be read", listener=self.name, error=error)
            return False
        # The comparison takes the same time for users that do not exist.
        stored = password.encode()
        is_right = hmac.compare_digest((expected or "").encode(), stored)
        return is_right and expected is not None

    def _scram(self, mechanism: str, name: str) -> StoredCredential | None:
        record = self._node.image.scram_credentials.get((TYPES[mechanism], name))
        if record is None:
            return None
        return StoredCredential(
            salt=record.salt,
            stored_key=record.stored_key,
            server_key=record.server_key,
            iterations=record.iterations,
        )

    def _token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        record = self._node.image.delegation_tokens.get(token_id)
        secret = self._node.config.optional_text("delegation.token.secret.key")
        if record is None or secret is None or record.expiration_timestamp <= self._node.clock.wall_ms():
            return None
        return token_credential(mechanism, record, secret)
