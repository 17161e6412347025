"""How the connections of one client are secured: a TLS context, a login, both or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.client.config.config import ClientConfig
from strandline.client.world import ClientWorld
from strandline.ports.tls import Tls

if TYPE_CHECKING:
    from strandline.security.login import Login

_PLAINTEXT: Final = "PLAINTEXT"


class ClientSecurity:
    """TLS and login of one client's connections. Raises ConfigError, which shows no secret, for settings that cannot be
    used."""

    def __init__(self, world: ClientWorld, config: ClientConfig) -> None:
        protocol = config.text("security.protocol").upper()
        self.tls: Tls | None = None
        self.login: Login | None = None
        if protocol == _PLAINTEXT:
            return
        # A client without security is spared the time that these take to load.
        from strandline.client.net.login_settings import LoginSettings, tls_of

        if protocol.endswith("SSL"):
            self.tls = tls_of(world, config)
        if protocol.startswith("SASL"):
            self.login = LoginSettings(world).login(config)
