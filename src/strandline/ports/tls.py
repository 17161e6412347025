"""TLS: the network makes an opaque context from settings, which `listen` and `connect` take.

The settings are Kafka's `ssl.*`. Only the network knows how to make a context of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

ClientAuth = Literal["none", "requested", "required"]


class TlsError(ConnectionError):
    """TLS cannot be set up, or a handshake failed. The text says why and what to do, and has no secrets."""

    is_transient = False  # True if another attempt may succeed: the other side went away


class TlsInterrupted(TlsError):
    """The connection ended during the handshake, or the peer did not respond in time."""

    is_transient = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsStore:
    """A key store or a trust store, in a file or as PEM text in the settings."""

    kind: str = "JKS"
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = None  # PEM
    key: str | None = field(default=None, repr=False)  # PEM
    key_password: str | None = field(default=None, repr=False)

    @property
    def is_given(self) -> bool:
        return self.location is not None or self.certificates is not None or self.key is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    prefix: str = ""  # the prefix of these settings' names, for error messages
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    key_store: TlsStore = TlsStore()
    trust_store: TlsStore = TlsStore()
    client_auth: ClientAuth = "none"
    checks_host_names: bool = True
    handshake_timeout_s: float = 30.0


class Tls(Protocol):
    """A context for one listener, or for connections that are opened to one kind of listener."""

    def reload(self) -> bool:
        """Reads the files of the settings again if they have changed; returns True if new connections use them from now
        on.

        Raises TlsError for files that cannot be used; then the old contents stay in use.
        """
        ...

    def replace(self, settings: TlsSettings) -> None:
        """Uses other settings for new connections; raises TlsError and keeps the old ones if they cannot be used."""
        ...
