"""The settings of TLS and SASL that every client has, by Kafka's names; three are librdkafka's, for convenience."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    ANY_LIST,
    CLASS,
    LIST,
    LOW,
    MEDIUM,
    PASSWORD,
    STRING,
    ConfigKey,
    OneOf,
    active,
)

SECURITY_KEYS: Final[tuple[ConfigKey, ...]] = (
    active(
        "security.protocol",
        STRING,
        "PLAINTEXT",
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), any_case=True),
        MEDIUM,
    ).documented(
        "How connections are secured: by TLS (SSL), by a login (SASL_PLAINTEXT), by both (SASL_SSL)."
    ),
    active("sasl.mechanism", STRING, "GSSAPI", None, MEDIUM).documented(
        "How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. GSSAPI, Kafka's default, is not spoken."
    ),
    active("sasl.jaas.config", PASSWORD, None, None, MEDIUM).documented(
        "User and password in the form of Java's JAAS: "
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="secret";'
    ),
    active("sasl.username", STRING, None, None, MEDIUM).documented(
        "The user, where sasl.jaas.config is not given. librdkafka's name."
    ),
    active("sasl.password", PASSWORD, None, None, MEDIUM).documented(
        "The password, where sasl.jaas.config is not given. librdkafka's name."
    ),
    active("sasl.oauthbearer.token", CLASS, None, None, MEDIUM).documented(
        "The token of OAUTHBEARER, or a function that returns one, which is called for each login. Strandline's own."
    ),
    active("sasl.oauthbearer.token.endpoint.url", STRING, None, None, MEDIUM).documented(
        "Where a token of OAUTHBEARER is asked for, with the client's credentials. Without it, sasl.oauthbearer.token."
    ),
    active("sasl.oauthbearer.client.credentials.client.id", STRING, None, None, MEDIUM).documented(
        "The id with which a token is asked for; or clientId in sasl.jaas.config."
    ),
    active("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, None, MEDIUM).documented(
        "The secret with which a token is asked for; or clientSecret in sasl.jaas.config."
    ),
    active("sasl.oauthbearer.scope", STRING, None, None, MEDIUM).documented(
        "The scope that is asked for with a token; or scope in sasl.jaas.config."
    ),
    active("ssl.ca.location", STRING, None, None, MEDIUM).documented(
        "A PEM file with the trusted authorities, where ssl.truststore.location is not given. librdkafka's name."
    ),
    active("ssl.truststore.location", STRING, None, None, MEDIUM).documented(
        "File of the trusted authorities: PEM, or PKCS12 with the extra `security`. Without it, the system's own."
    ),
    active("ssl.truststore.type", STRING, "JKS", None, MEDIUM).documented(
        "Format of the trust store. The file's contents count: PEM and PKCS12 are read, JKS is refused."
    ),
    active("ssl.truststore.password", PASSWORD, None, None, MEDIUM).documented(
        "Password of the trust store."
    ),
    active("ssl.truststore.certificates", PASSWORD, None, None, MEDIUM).documented(
        "The trusted certificates themselves, in PEM."
    ),
    active("ssl.keystore.location", STRING, None, None, MEDIUM).documented(
        "File with this client's private key and certificate, for brokers that ask for one."
    ),
    active("ssl.keystore.type", STRING, "JKS", None, MEDIUM).documented(
        "Format of the key store. The file's contents count: PEM and PKCS12 are read, JKS is refused."
    ),
    active("ssl.keystore.password", PASSWORD, None, None, MEDIUM).documented("Password of the key store."),
    active("ssl.keystore.key", PASSWORD, None, None, MEDIUM).documented("The private key itself, in PEM."),
    active("ssl.keystore.certificate.chain", PASSWORD, None, None, MEDIUM).documented(
        "The certificates that belong to the private key, in PEM."
    ),
    active("ssl.key.password", PASSWORD, None, None, MEDIUM).documented("Password of the private key."),
    active("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ANY_LIST, MEDIUM).documented(
        "The versions of TLS that connections may use."
    ),
    active("ssl.cipher.suites", LIST, (), ANY_LIST, LOW).documented(
        "The cipher suites of TLS 1.2 that connections may use. Empty: those of OpenSSL."
    ),
    active("ssl.endpoint.identification.algorithm", STRING, "https", None, LOW).documented(
        "How a broker's name is checked against its certificate. Empty: it is not, which lets others pose as it."
    ),
)
