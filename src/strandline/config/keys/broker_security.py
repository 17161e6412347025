"""Broker keys of security: authorization, TLS, delegation tokens. `broker_sasl` has those of SASL.

Keys of TLS and SASL can be given for one listener with the prefix listener.name.<name in lower case>.
"""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    ANY_LIST,
    BOOLEAN,
    CLASS,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NON_NULL,
    PASSWORD,
    PER_BROKER,
    STRING,
    ConfigKey,
    accepted,
    active,
    at_least,
    one_of,
)

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("authorizer.class.name", STRING, "", NON_NULL, LOW).documented(
        "The class of the authorizer: org.apache.kafka.metadata.authorizer.StandardAuthorizer, with "
        "super.users and allow.everyone.if.no.acl.found. Empty: every user may do everything."
    ),
    accepted(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        None,
        MEDIUM,
        PER_BROKER,
    ).documented("The class that derives a user's name from a connection."),
    accepted("security.providers", STRING, None, None, LOW).documented(
        "Classes that provide security algorithms."
    ),
    active("connections.max.reauth.ms", LONG, 0, None, MEDIUM).documented(
        "How long a SASL login is valid before the client must log in again; 0 is forever."
    ),
    active("delegation.token.secret.key", PASSWORD, None, None, MEDIUM).documented(
        "The secret with which delegation tokens are signed, the same on every node. Without it there are "
        "no tokens."
    ),
    active("delegation.token.max.lifetime.ms", LONG, 604_800_000, at_least(1), MEDIUM).documented(
        "How long a delegation token can be renewed at most."
    ),
    active("delegation.token.expiry.time.ms", LONG, 86_400_000, at_least(1), MEDIUM).documented(
        "How long a delegation token is valid before it must be renewed."
    ),
    active("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, at_least(1), LOW).documented(
        "How often expired delegation tokens are searched for and removed."
    ),
    accepted("ssl.protocol", STRING, "TLSv1.3", None, MEDIUM, PER_BROKER).documented(
        "The TLS protocol of a new context."
    ),
    accepted("ssl.provider", STRING, None, None, MEDIUM, PER_BROKER).documented(
        "The provider of TLS. Without it, the platform's own."
    ),
    active("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ANY_LIST, MEDIUM, PER_BROKER).documented(
        "The TLS protocols that connections may use."
    ),
    active("ssl.cipher.suites", LIST, (), ANY_LIST, MEDIUM, PER_BROKER).documented(
        "The cipher suites that connections may use. Empty: all that the platform offers."
    ),
    active(
        "ssl.client.auth", STRING, "none", one_of("required", "requested", "none"), MEDIUM, PER_BROKER
    ).documented("Whether clients must send a certificate, may send one, or send none."),
    active("ssl.endpoint.identification.algorithm", STRING, "https", None, LOW, PER_BROKER).documented(
        "How a server's name is checked against its certificate. Empty: it is not."
    ),
    accepted("ssl.secure.random.implementation", STRING, None, None, LOW, PER_BROKER).documented(
        "The random number generator that TLS uses."
    ),
    accepted("ssl.engine.factory.class", CLASS, None, None, LOW, PER_BROKER).documented(
        "A class that makes TLS engines. Without it, they are made from the keys below."
    ),
    accepted("ssl.keymanager.algorithm", STRING, "SunX509", None, MEDIUM, PER_BROKER).documented(
        "The algorithm that chooses among the keys of the key store."
    ),
    accepted("ssl.trustmanager.algorithm", STRING, "PKIX", None, MEDIUM, PER_BROKER).documented(
        "The algorithm that checks certificates against the trust store."
    ),
    active("ssl.keystore.type", STRING, "JKS", None, MEDIUM, PER_BROKER).documented(
        "Format of the key store. The contents count: PEM is read, PKCS12 with the extra `security`, JKS is refused."
    ),
    active("ssl.keystore.location", STRING, None, None, MEDIUM, PER_BROKER).documented(
        "File of the key store."
    ),
    active("ssl.keystore.password", PASSWORD, None, None, MEDIUM, PER_BROKER).documented(
        "Password of the key store."
    ),
    active("ssl.keystore.key", PASSWORD, None, None, MEDIUM, PER_BROKER).documented(
        "The private key itself, in PEM."
    ),
    active("ssl.keystore.certificate.chain", PASSWORD, None, None, MEDIUM, PER_BROKER).documented(
        "The certificates that belong to the private key, in PEM."
    ),
    active("ssl.key.password", PASSWORD, None, None, MEDIUM, PER_BROKER).documented(
        "Password of the private key."
    ),
    active("ssl.truststore.type", STRING, "JKS", None, MEDIUM, PER_BROKER).documented(
        "Format of the trust store. The contents count: PEM is read, PKCS12 with the extra `security`, JKS is refused."
    ),
    active("ssl.truststore.location", STRING, None, None, MEDIUM, PER_BROKER).documented(
        "File of the trust store."
    ),
    active("ssl.truststore.password", PASSWORD, None, None, MEDIUM, PER_BROKER).documented(
        "Password of the trust store."
    ),
    active("ssl.truststore.certificates", PASSWORD, None, None, MEDIUM, PER_BROKER).documented(
        "The trusted certificates themselves, in PEM."
    ),
    active("ssl.principal.mapping.rules", STRING, "DEFAULT", None, LOW).documented(
        "Rules that turn the name in a client's certificate into a short user name."
    ),
    accepted("ssl.allow.dn.changes", BOOLEAN, False, None, LOW).documented(
        "Whether the distinguished name may change when a key store is replaced while the broker runs."
    ),
    accepted("ssl.allow.san.changes", BOOLEAN, False, None, LOW).documented(
        "Whether alternative names may be lost when a key store is replaced while the broker runs."
    ),
)
