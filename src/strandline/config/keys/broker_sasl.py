"""Broker keys of SASL: mechanisms, the logins of brokers themselves, Kerberos and OAuth."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    ANY_LIST,
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    SHORT,
    STRING,
    ConfigKey,
    OneOf,
    accepted,
    active,
    between,
)

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("sasl.enabled.mechanisms", LIST, ("GSSAPI",), ANY_LIST, MEDIUM, PER_BROKER).documented(
        "The SASL mechanisms that clients may use."
    ),
    active("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", None, MEDIUM, PER_BROKER).documented(
        "The SASL mechanism that brokers use among themselves."
    ),
    active("sasl.jaas.config", PASSWORD, None, None, MEDIUM, PER_BROKER).documented(
        "The users or the credentials of a login, in the syntax of JAAS."
    ),
    accepted("sasl.server.callback.handler.class", CLASS, None, None, MEDIUM).documented(
        "A class that handles the callbacks of a SASL mechanism on the server's side."
    ),
    accepted("sasl.client.callback.handler.class", CLASS, None, None, MEDIUM).documented(
        "A class that handles the callbacks of a SASL mechanism on the client's side."
    ),
    accepted("sasl.login.callback.handler.class", CLASS, None, None, MEDIUM).documented(
        "A class that handles the callbacks of a login."
    ),
    accepted("sasl.login.class", CLASS, None, None, MEDIUM).documented("A class that logs in."),
    active("sasl.server.max.receive.size", INT, 524_288, None, MEDIUM).documented(
        "Longest message that is accepted from a client that has not logged in yet."
    ),
    accepted("sasl.kerberos.service.name", STRING, None, None, MEDIUM, PER_BROKER).documented(
        "The name under which the broker is known to Kerberos."
    ),
    accepted("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", None, MEDIUM, PER_BROKER).documented(
        "Path of the kinit command."
    ),
    accepted("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, None, MEDIUM, PER_BROKER).documented(
        "Share of a ticket's life after which it is renewed."
    ),
    accepted("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, None, MEDIUM, PER_BROKER).documented(
        "Share of the renewal time that is added at random."
    ),
    accepted("sasl.kerberos.min.time.before.relogin", LONG, 60_000, None, MEDIUM, PER_BROKER).documented(
        "Shortest time between two logins with Kerberos, in milliseconds."
    ),
    accepted(
        "sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), ANY_LIST, MEDIUM, PER_BROKER
    ).documented(
        "Rules that turn a Kerberos principal into a short user name. The first that matches counts."
    ),
    accepted("sasl.login.refresh.window.factor", DOUBLE, 0.8, None, MEDIUM, PER_BROKER).documented(
        "Share of a login's life after which it is refreshed."
    ),
    accepted("sasl.login.refresh.window.jitter", DOUBLE, 0.05, None, MEDIUM, PER_BROKER).documented(
        "Share of the login's life that is added at random."
    ),
    accepted("sasl.login.refresh.min.period.seconds", SHORT, 60, None, MEDIUM, PER_BROKER).documented(
        "Shortest time before a login is refreshed."
    ),
    accepted("sasl.login.refresh.buffer.seconds", SHORT, 300, None, MEDIUM, PER_BROKER).documented(
        "Time before a login ends within which no refresh is left waiting."
    ),
    accepted("sasl.login.connect.timeout.ms", INT, None, None, LOW).documented(
        "How long the connection to an identity provider may take to open."
    ),
    accepted("sasl.login.read.timeout.ms", INT, None, None, LOW).documented(
        "How long the response of an identity provider may take."
    ),
    accepted("sasl.login.retry.backoff.ms", LONG, 100, None, LOW).documented(
        "First pause before a login with an identity provider is tried again."
    ),
    accepted("sasl.login.retry.backoff.max.ms", LONG, 10_000, None, LOW).documented(
        "Longest pause before a login with an identity provider is tried again."
    ),
    accepted("sasl.oauthbearer.token.endpoint.url", STRING, None, None, MEDIUM).documented(
        "The URL from which access tokens are requested."
    ),
    active("sasl.oauthbearer.jwks.endpoint.url", STRING, None, None, MEDIUM).documented(
        "The URL of the keys with which tokens are checked."
    ),
    active("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, None, LOW).documented(
        "How often the keys with which tokens are checked are fetched again."
    ),
    accepted("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, None, LOW).documented(
        "First pause before those keys are requested again after a failure."
    ),
    accepted("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, None, LOW).documented(
        "Longest pause before those keys are requested again after a failure."
    ),
    accepted(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        None,
        MEDIUM,
    ).documented("The class that fetches access tokens."),
    accepted(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        None,
        MEDIUM,
    ).documented("The class that checks access tokens."),
    accepted("sasl.oauthbearer.scope", STRING, None, None, MEDIUM).documented(
        "The scope that is requested with a token."
    ),
    accepted("sasl.oauthbearer.scope.claim.name", STRING, "scope", None, LOW).documented(
        "The claim of a token that holds its scope."
    ),
    active("sasl.oauthbearer.sub.claim.name", STRING, "sub", None, LOW).documented(
        "The claim of a token that holds its subject."
    ),
    active("sasl.oauthbearer.expected.audience", LIST, (), ANY_LIST, HIGH).documented(
        "Audiences of which a token must name one."
    ),
    active("sasl.oauthbearer.expected.issuer", STRING, None, None, HIGH).documented(
        "The issuer that a token must name."
    ),
    active("sasl.oauthbearer.clock.skew.seconds", INT, 30, None, LOW).documented(
        "How far the clocks of broker and identity provider may differ."
    ),
    accepted("sasl.oauthbearer.client.credentials.client.id", STRING, None, None, MEDIUM).documented(
        "The client id with which the broker asks for a token."
    ),
    accepted("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, None, MEDIUM).documented(
        "The secret that belongs to the client id."
    ),
    accepted("sasl.oauthbearer.assertion.file", STRING, None, None, MEDIUM).documented(
        "A file with an assertion that another program has made."
    ),
    accepted("sasl.oauthbearer.assertion.template.file", STRING, None, None, MEDIUM).documented(
        "A file with the head and claims from which assertions are made."
    ),
    accepted(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        OneOf(("ES256", "RS256"), any_case=True),
        MEDIUM,
    ).documented("The algorithm with which assertions are signed."),
    accepted("sasl.oauthbearer.assertion.private.key.file", STRING, None, None, MEDIUM).documented(
        "The file of the key with which assertions are signed."
    ),
    accepted("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, None, MEDIUM).documented(
        "The passphrase of the key with which assertions are signed."
    ),
    accepted("sasl.oauthbearer.assertion.claim.aud", STRING, None, None, MEDIUM).documented(
        "The audience that an assertion names."
    ),
    accepted("sasl.oauthbearer.assertion.claim.iss", STRING, None, None, MEDIUM).documented(
        "The issuer that an assertion names."
    ),
    accepted("sasl.oauthbearer.assertion.claim.sub", STRING, None, None, MEDIUM).documented(
        "The subject that an assertion names."
    ),
    accepted("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, between(0, 86_400), LOW).documented(
        "How long an assertion is valid."
    ),
    accepted("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, between(0, 3600), LOW).documented(
        "How long before its creation an assertion is already valid."
    ),
    accepted("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, None, MEDIUM).documented(
        "Whether every assertion gets an id of its own."
    ),
)
