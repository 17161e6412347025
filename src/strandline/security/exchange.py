"""One login by SASL, seen from either side: messages in, messages out, at the end a principal or a failure.

A server's exchange is stepped with each message of the client until it is complete. A client's exchange gives the first
message and is stepped with each challenge until it is complete. Neither sends anything, and both fail by raising
AuthenticationFailed, whose text may be sent to the other side: it holds no secret, and does not say whether a user
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
    """The login is refused; the text says why, as far as the other side may know."""


class ServerExchange(Protocol):
    @property
    def principal(self) -> Principal | None:
        """The user, once the exchange is complete; None before."""
        ...

    @property
    def expires_at_ms(self) -> int | None:
        """When the credential ends, in wall time; None for one that does not."""
        ...

    def step(self, message: bytes) -> bytes:
        """The challenge that follows a message of the client; raises AuthenticationFailed."""
        ...


class ClientExchange(Protocol):
    def first(self) -> bytes:
        """The message that begins the exchange."""
        ...

    def step(self, challenge: bytes) -> bytes | None:
        """The response to a challenge; None if the exchange is complete. Raises AuthenticationFailed."""
        ...


def invalid_credentials(mechanism: str) -> AuthenticationFailed:
    """The failure that tells nothing but that it is one, in Kafka's words."""
    return AuthenticationFailed(
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )


def unsupported_mechanism(mechanism: str) -> str:
    """A sentence for a mechanism that is not spoken here."""
    if mechanism == GSSAPI:
        return (
            "GSSAPI (Kerberos), Kafka's default, is not spoken by Strandline: name other mechanisms in "
            f"sasl.enabled.mechanisms ({', '.join(MECHANISMS)}), and one of them in the client's sasl.mechanism"
        )
    return f"{mechanism} is no SASL mechanism that Strandline speaks: use one of {', '.join(MECHANISMS)}"
