"""Checks names and passwords of HTTP's basic login: they are valid if the cluster accepts them. So the registry has no
users of its own. The result is remembered for a minute if the cluster accepted the login, and for two seconds if it
refused: a client that sends its password with every request costs one login a minute.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from strandline.client.admin.cluster import ClusterAdmin
from strandline.client.errors import AuthenticationError, KafkaError
from strandline.registry import errors

ACCEPTED_SECONDS: Final = 60.0
REFUSED_SECONDS: Final = 2.0
_KEPT_MAX: Final = 1000
_LOGIN_SECONDS_MAX: Final = 10.0
_NO_SASL: Final = (
    "authentication.method=BASIC checks names and passwords by logging in to the cluster: give the registry the "
    "settings of a user (--command-config FILE), with security.protocol=SASL_SSL or SASL_PLAINTEXT and "
    "sasl.mechanism=PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512"
)
_MODULES: Final = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}


class ClusterLogins:
    def __init__(self, client: Mapping[str, Any], realm: str) -> None:
        """Raises ValueError if the settings of the cluster have no login with a name and a password."""
        protocol, mechanism = str(client.get("security.protocol", "")), str(client.get("sasl.mechanism", ""))
        if not protocol.upper().startswith("SASL") or mechanism not in _MODULES:
            raise ValueError(_NO_SASL)
        self.realm = realm
        self._client = client
        self._module = f"org.apache.kafka.common.security.{_MODULES[mechanism]}"
        self._known: dict[
            bytes, tuple[float, bool]
        ] = {}  # by a hash of the header: the time until which the result is remembered, and the result
        self._lock = asyncio.Lock()

    async def is_accepted(self, authorization: str) -> bool:
        """True if the header names a user of the cluster, with the right password."""
        key = hashlib.sha256(authorization.encode()).digest()
        known = self._verdict(key)
        if known is None:
            async with self._lock:  # one login at a time: guesses cannot flood the cluster
                known = self._verdict(key)
                if known is None:
                    known = await self._ask(authorization)
                    self._keep(key, known)
        return known

    def _verdict(self, key: bytes) -> bool | None:
        until, verdict = self._known.get(key, (0.0, False))
        return verdict if asyncio.get_running_loop().time() < until else None

    def _keep(self, key: bytes, verdict: bool) -> None:
        if len(self._known) >= _KEPT_MAX:
            self._known.clear()
        seconds = ACCEPTED_SECONDS if verdict else REFUSED_SECONDS
        self._known[key] = (asyncio.get_running_loop().time() + seconds, verdict)

    async def _ask(self, authorization: str) -> bool:
        found = read_credentials(authorization)
        if found is None:
            return False
        name, password = (each.replace("\\", "\\\\").replace('"', '\\"') for each in found)
        jaas = f'{self._module} required username="{name}" password="{password}";'
        settings = {**self._client, "sasl.jaas.config": jaas, "client.id": "schema-registry-login"}
        admin = ClusterAdmin({key: each for key, each in settings.items() if key not in _CREDENTIALS})
        try:
            await admin.start(timeout=_LOGIN_SECONDS_MAX)
        except AuthenticationError:
            return False
        except KafkaError as error:
            raise errors.store_failed(f"the login could not be checked: {error}") from error
        finally:
            await admin.close()
        return True


_CREDENTIALS: Final = ("sasl.username", "sasl.password")  # librdkafka's names, which would take precedence


def read_credentials(authorization: str) -> tuple[str, str] | None:
    """Returns name and password of a basic login; None if the header is another one."""
    method, _, encoded = authorization.partition(" ")
    if method.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon and name else None
