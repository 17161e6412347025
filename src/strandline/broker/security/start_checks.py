"""Rules for settings of TLS and SASL that must hold before a node starts (ADR 38).

A node never opens an unprotected port if its settings ask for a protected one, and never starts if no user could log
in.
"""

from __future__ import annotations

from strandline.config import BrokerConfig, DynamicConfigs, InvalidConfig, Listener
from strandline.config.listener_values import ListenerValues
from strandline.security.authorizer import ALLOW_UNRULED, AUTHORIZER_CLASS, SUPER_USERS, parse_super_users
from strandline.security.exchange import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    unsupported_mechanism,
)
from strandline.security.jaas import parse_jaas
from strandline.security.principal import ANONYMOUS
from strandline.security.principal_mapping import parse_rules

JAAS: str = "sasl.jaas.config"
_AUTHORIZER: str = "authorizer.class.name"


def check_security(config: BrokerConfig) -> None:
    """Raises InvalidConfig, whose text shows no secret."""
    check_authorizer(config)
    configs = DynamicConfigs(config)
    for listener in config.listeners:
        if listener.protocol.startswith("SASL"):
            _check_mechanisms(configs, listener)
    if any("SSL" in listener.protocol for listener in config.listeners):
        try:
            parse_rules(config.text("ssl.principal.mapping.rules"))
        except ValueError as error:
            raise InvalidConfig("ssl.principal.mapping.rules", None, str(error)) from None
    _check_controllers(config)


def check_authorizer(config: BrokerConfig) -> None:
    """Raises InvalidConfig for an authorizer that is not Kafka's own, and for super users that cannot be read."""
    name = config.text(_AUTHORIZER)
    if name not in ("", AUTHORIZER_CLASS):
        raise InvalidConfig(
            _AUTHORIZER,
            name,
            f"{_AUTHORIZER} must be {AUTHORIZER_CLASS}, or empty: there is no other authorizer here",
        )
    try:
        users = parse_super_users(config.originals.get(SUPER_USERS, ""))
    except ValueError as error:
        raise InvalidConfig(SUPER_USERS, config.originals[SUPER_USERS], str(error)) from None
    allowed = config.originals.get(ALLOW_UNRULED, "").strip().lower()
    if allowed not in ("", "true", "false"):
        raise InvalidConfig(ALLOW_UNRULED, allowed, f"{ALLOW_UNRULED} must be true or false")
    own = node_principal(config) if name and allowed != "true" else None
    if own is not None and own not in users:
        raise InvalidConfig(
            SUPER_USERS,
            config.originals.get(SUPER_USERS),
            f"This node connects to the controllers as {own}, which is no super user: they would refuse it before they "
            f"have read any rule. Add it: {SUPER_USERS}={';'.join([*sorted(users), own])}",
        )


def node_principal(config: BrokerConfig) -> str | None:
    """Returns the principal of this node at the controllers; None if there are no others, or settings do not tell."""
    names = config.strings("controller.listener.names")
    if not names or (len(config.strings("controller.quorum.voters")) == 1 and config.is_controller):
        return None
    protocol = config.protocols.get(names[0].upper(), "PLAINTEXT")
    if protocol == "PLAINTEXT":
        return str(ANONYMOUS)
    mechanism = config.text("sasl.mechanism.controller.protocol")
    if not protocol.startswith("SASL") or mechanism != PLAIN:
        return None
    values = ListenerValues(DynamicConfigs(config), names[0])
    text = values.own_mechanism_text(PLAIN, JAAS)
    try:
        options = {} if text is None else parse_jaas(JAAS, text).options
    except ValueError:
        return None  # another check refuses it with a better message
    return f"User:{options['username']}" if "username" in options else None


def _check_mechanisms(configs: DynamicConfigs, listener: Listener) -> None:
    values = ListenerValues(configs, listener.name)
    enabled = values.value("sasl.enabled.mechanisms")
    assert isinstance(enabled, tuple)
    key = "sasl.enabled.mechanisms"
    if not enabled:
        raise InvalidConfig(key, None, f"{key} is empty, so nobody could log in at {listener.name}")
    for mechanism in enabled:
        if mechanism not in MECHANISMS:
            raise InvalidConfig(key, None, f"{listener.name}: {unsupported_mechanism(mechanism)}")
    if PLAIN in enabled:
        users = plain_users(values)
        if not users:
            raise InvalidConfig(
                values.mechanism_key(PLAIN, JAAS),
                None,
                f"{values.mechanism_key(PLAIN, JAAS)} must name the users of PLAIN, or nobody could log in at "
                f"{listener.name}: org.apache.kafka.common.security.plain.PlainLoginModule required "
                'user_alice="password"; (with the prefix of listener and mechanism, as in Kafka)',
            )
    if OAUTHBEARER in enabled and not values.value("sasl.oauthbearer.jwks.endpoint.url"):
        raise InvalidConfig(
            "sasl.oauthbearer.jwks.endpoint.url",
            None,
            f"OAUTHBEARER at {listener.name} needs sasl.oauthbearer.jwks.endpoint.url, https:// or file://, with the "
            "keys that tokens are signed with",
        )


def plain_users(values: ListenerValues) -> dict[str, str]:
    """Returns passwords by user; raises InvalidConfig, without the text, if the setting cannot be read."""
    text = values.own_mechanism_text(PLAIN, JAAS)
    key = values.mechanism_key(PLAIN, JAAS)
    try:
        return {} if text is None else parse_jaas(key, text).users()
    except ValueError as error:
        raise InvalidConfig(key, None, str(error)) from None


def _check_controllers(config: BrokerConfig) -> None:
    names = config.strings("controller.listener.names")
    key = "sasl.mechanism.controller.protocol"
    mechanism = config.text(key)
    is_alone = len(config.strings("controller.quorum.voters")) == 1 and config.is_controller
    for name in names[:1]:
        if is_alone or not config.protocols.get(name.upper(), "PLAINTEXT").startswith("SASL"):
            continue
        if mechanism in (SCRAM_SHA_256, SCRAM_SHA_512):
            raise InvalidConfig(
                key,
                mechanism,
                f"{key} cannot be {mechanism}: its users are in the metadata, which a node reads only after it has "
                "logged in to the controllers. Use PLAIN there, or client certificates over SSL",
            )
        if mechanism not in MECHANISMS:
            raise InvalidConfig(key, mechanism, f"{key}: {unsupported_mechanism(mechanism)}")
