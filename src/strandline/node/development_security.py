"""Everything that a secured broker and its clients need on a developer's machine and in tests (needs `security`).

An authority, a server's certificate, one user with a password, and the settings that go with them: of the brokers, and
of the clients that people use. They are kept in one directory, so that the next start is the same.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from strandline.base.ids import uuid_text
from strandline.config import parse_properties, render_properties
from strandline.node.development_certificates import CertificateFiles, make_certificate, write_secret
from strandline.node.random import RealRandom
from strandline.security.exchange import PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from strandline.security.scram import ITERATIONS_MIN, TYPES, credential_for
from strandline.wire.records.metadata import UserScramCredentialRecord

PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
CLIENT_PROPERTIES: Final = "client.properties"
LIBRDKAFKA_PROPERTIES: Final = "librdkafka.properties"
REGISTRY_PROPERTIES: Final = "registry.properties"
_USER: Final = "alice"
_NODES: Final = "node"  # the user as whom nodes log in to each other
_BROKER_PASSWORD: Final = "broker.password"
_MODULES: Final = "org.apache.kafka.common.security"
_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


class DevelopmentSecurity:
    def __init__(
        self,
        directory: Path,
        protocol: str = "SASL_SSL",
        mechanism: str = SCRAM_SHA_512,
        *,
        hosts: tuple[str, ...] = (),
        client_auth: str = "none",
    ) -> None:
        """Makes the files that are missing. Raises ValueError for a protocol that secures nothing, and TlsError without
        the extra."""
        if protocol not in PROTOCOLS:
            raise ValueError(f"{protocol} secures nothing: choose one of {', '.join(PROTOCOLS)}")
        self.directory = directory.absolute()
        self.protocol = protocol
        self.mechanism = mechanism
        self.user = _USER
        self._client_auth = client_auth
        self.server: CertificateFiles | None = None
        self.client: CertificateFiles | None = None
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.has_tls:
            self.server = make_certificate(
                self.directory, "server", tuple(dict.fromkeys((*_HOSTS, *hosts))), keeps_existing=True
            )
            self.client = make_certificate(self.directory, _USER, keeps_existing=True)
        self.password = self._kept_password()
        self._node_password = self._kept_secret(_BROKER_PASSWORD)

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    # Brokers

    def broker_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Returns the settings of a node whose listeners were PLAINTEXT, with this protocol on all of them."""
        protocol, secured = self.protocol, dict(settings)
        for key in ("listeners", "advertised.listeners"):
            if key in secured:
                secured[key] = secured[key].replace("PLAINTEXT://", f"{protocol}://")
        secured["listener.security.protocol.map"] = f"{protocol}:{protocol},CONTROLLER:{protocol}"
        secured["inter.broker.listener.name"] = protocol
        if self.server is not None:
            secured["ssl.keystore.type"] = secured["ssl.truststore.type"] = "PEM"
            secured["ssl.keystore.location"] = str(self.server.key_store)
            secured["ssl.truststore.location"] = str(self.server.authority)
            for name in (protocol.lower(), "controller"):
                secured[f"listener.name.{name}.ssl.client.auth"] = self._client_auth
        if self.has_sasl:
            users = f'user_{_NODES}="{self._node_password}" user_{self.user}="{self.password}"'
            jaas = f'{_MODULES}.plain.PlainLoginModule required username="{_NODES}" '
            jaas += f'password="{self._node_password}" {users};'
            secured["sasl.enabled.mechanisms"] = f"{PLAIN},{SCRAM_SHA_256},{SCRAM_SHA_512}"
            secured["sasl.mechanism.inter.broker.protocol"] = PLAIN
            secured["sasl.mechanism.controller.protocol"] = PLAIN
            secured["listener.name.controller.sasl.enabled.mechanisms"] = PLAIN
            for name in (protocol.lower(), "controller"):
                secured[f"listener.name.{name}.plain.sasl.jaas.config"] = jaas
        return secured

    def scram_users(self) -> list[UserScramCredentialRecord]:
        """Returns the user's records for the metadata of a new cluster."""
        return [self._scram_user(each) for each in (SCRAM_SHA_256, SCRAM_SHA_512)] if self.has_sasl else []

    def _scram_user(self, mechanism: str) -> UserScramCredentialRecord:
        random = RealRandom()
        credential = credential_for(mechanism, self.password, random.uuid() + random.uuid(), ITERATIONS_MIN)
        return UserScramCredentialRecord(
            name=self.user,
            mechanism=TYPES[mechanism],
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )

    # Clients

    def client_settings(self) -> dict[str, str]:
        """Returns settings by Kafka's own names, for Strandline's client and for Java's."""
        found = {"security.protocol": self.protocol}
        if self.server is not None and self.client is not None:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.server.authority)}
            if self._client_auth != "none":
                found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.client.key_store)}
        if self.has_sasl:
            module = "plain.Plain" if self.mechanism == PLAIN else "scram.Scram"
            options = f'username="{self.user}" password="{self.password}"'
            found["sasl.mechanism"] = self.mechanism
            found["sasl.jaas.config"] = f"{_MODULES}.{module}LoginModule required {options};"
        return found

    def librdkafka_settings(self) -> dict[str, str]:
        """Returns settings for confluent-kafka and kcat."""
        found = {"security.protocol": self.protocol}
        if self.server is not None and self.client is not None:
            found["ssl.ca.location"] = str(self.server.authority)
            if self._client_auth != "none":
                found["ssl.key.location"] = found["ssl.certificate.location"] = str(self.client.key_store)
        if self.has_sasl:
            found |= {"sasl.mechanism": self.mechanism}
            found |= {"sasl.username": self.user, "sasl.password": self.password}
        return found

    def python_settings(self) -> dict[str, Any]:
        """Returns settings for aiokafka and kafka-python."""
        found: dict[str, Any] = {"security_protocol": self.protocol}
        if self.server is not None and self.client is not None:
            context = ssl.create_default_context(cafile=str(self.server.authority))
            if self._client_auth != "none":
                context.load_cert_chain(self.client.key_store)
            found["ssl_context"] = context
        if self.has_sasl:
            found |= {"sasl_mechanism": self.mechanism}
            found |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
        return found

    def write_client_properties(self, bootstrap: str) -> Path:
        """Writes the settings of clients into files that only their owner can read; returns the path of the one with
        Kafka's names."""
        self._write_properties(LIBRDKAFKA_PROPERTIES, bootstrap, self.librdkafka_settings())
        self._write_registry_properties()
        return self._write_properties(CLIENT_PROPERTIES, bootstrap, self.client_settings())

    def _write_properties(self, name: str, bootstrap: str, settings: Mapping[str, str]) -> Path:
        path = self.directory / name
        text = render_properties({"bootstrap.servers": bootstrap, **settings})
        write_secret(path, text.encode())
        return path

    def _write_registry_properties(self) -> None:
        """Writes the settings of the schema registry's clients, by Confluent's names."""
        settings = {"basic.auth.credentials.source": "USER_INFO"}
        settings["basic.auth.user.info"] = f"{self.user}:{self.password}"
        if self.server is not None:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.server.authority)}
        write_secret(self.directory / REGISTRY_PROPERTIES, render_properties(settings).encode())

    # Passwords are made once

    def _kept_password(self) -> str:
        return self._kept_secret(f"{_USER}.password")

    def _kept_secret(self, name: str) -> str:
        path = self.directory / name
        if not path.exists():
            random = RealRandom()
            write_secret(path, uuid_text(random.uuid()).encode())
        return path.read_text().strip()


def mechanism_of(directory: Path) -> str | None:
    """Returns the mechanism that clients were told at the last start, or None at the first."""
    path = directory / CLIENT_PROPERTIES
    if not path.exists():
        return None
    entries = {entry.key: entry.value for entry in parse_properties(path.read_text())}
    return entries.get("sasl.mechanism")
