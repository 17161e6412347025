"""One login by SASL, for both sides: it takes messages and returns messages, and ends with a principal or a failure.

A server's exchange takes a step for each message of the client until it is complete. A client's exchange returns its
first message, and takes a step for each challenge until it is complete. Neither sends anything. Both raise
AuthenticationFailed, whose text may be sent to the other side: it has no secret, and does not show whether a user
exists.
"""

from __future__ import annotations

from typing import Final, Protocol

from strandline.security.principal import Principal

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


class AuthenticationFailed(Exception):
    """The login is refused; the text gives the reason, as far as the other side may know it."""


class ServerExchange(Protocol):
    @property
    def principal(self) -> Principal | None:
        """The user, once the exchange is complete; None before."""
        ...

    @property
    def expires_at_ms(self) -> int | None:
        """The time at which the credential expires, in wall time; None if it does not."""
        ...

    def step(self, message: bytes) -> bytes:
        """Returns the challenge that follows a message of the client; raises AuthenticationFailed."""
        ...


class ClientExchange(Protocol):
    def first(self) -> bytes:
        """Returns the first message of the exchange."""
        ...

    def step(self, challenge: bytes) -> bytes | None:
        """Returns the response to a challenge, None if the exchange is complete; raises AuthenticationFailed."""
        ...


def invalid_credentials(mechanism: str) -> AuthenticationFailed:
    """Returns a failure without details, in Kafka's words."""
    return AuthenticationFailed(
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )


def unsupported_mechanism(mechanism: str) -> str:
    """Returns the message for a mechanism that is not supported."""
    if mechanism == GSSAPI:
        return (
            "GSSAPI (Kerberos), Kafka's default, is not spoken by Strandline: name other mechanisms in "
            f"sasl.enabled.mechanisms ({', '.join(MECHANISMS)}), and one of them in the client's sasl.mechanism"
        )
    return f"{mechanism} is not a SASL mechanism of Strandline: use one of {', '.join(MECHANISMS)}"
