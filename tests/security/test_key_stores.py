"""Certificates in every form that settings may have them, and their change while the broker runs."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from strandline.client.errors import ConfigError
from strandline.client.sync import Admin
from strandline.node.development_certificates import make_certificate
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess
from tests.waiting import eventually

PASSWORD = "of the store"


def pem_parts(store: Path) -> tuple[str, str]:
    """Returns the private key and the certificates of a PEM file."""
    blocks = store.read_text().split("-----BEGIN ")[1:]
    key = next(each for each in blocks if "PRIVATE KEY" in each.splitlines()[0])
    chain = [each for each in blocks if each is not key]
    return f"-----BEGIN {key}", "".join(f"-----BEGIN {each}" for each in chain)


def as_pkcs12(store: Path, authority: Path) -> tuple[Path, Path]:
    """Returns the same as a key store and a trust store of PKCS12."""
    key, chain = pem_parts(store)
    certificates = x509.load_pem_x509_certificates(chain.encode())
    private = load_pem_private_key(key.encode(), None)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    own = pkcs12.serialize_key_and_certificates(
        b"own",
        private,  # type: ignore[arg-type]
        certificates[0],
        certificates[1:],
        encryption,
    )
    roots = x509.load_pem_x509_certificates(authority.read_bytes())
    trusted = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(each, b"ca") for each in roots], encryption
    )
    paths = store.with_suffix(".p12"), authority.with_suffix(".p12")
    for path, data in zip(paths, (own, trusted), strict=True):
        path.write_bytes(data)
    return paths


def stores(security: DevelopmentSecurity, kind: str) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the settings of a broker and of a client, with their certificates in one form."""
    assert security.server is not None
    assert security.client is not None
    server, client, authority = (
        security.server.key_store,
        security.client.key_store,
        security.server.authority,
    )
    if kind == "PEM text":
        found = []
        for store in (server, client):
            key, chain = pem_parts(store)
            found.append(
                {
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.key": key,
                    "ssl.keystore.certificate.chain": chain,
                    "ssl.truststore.type": "PEM",
                    "ssl.truststore.certificates": authority.read_text(),
                }
            )
        return found[0], found[1]
    both = []
    for store in (server, client):
        own, trusted = as_pkcs12(store, authority) if kind == "PKCS12" else (store, authority)
        settings = {"ssl.keystore.location": str(own), "ssl.truststore.location": str(trusted)}
        settings |= {"ssl.keystore.type": kind, "ssl.truststore.type": kind}
        if kind == "PKCS12":
            settings |= {"ssl.keystore.password": PASSWORD, "ssl.truststore.password": PASSWORD}
        both.append(settings)
    return both[0], both[1]


@pytest.mark.parametrize("kind", ["PEM", "PEM text", "PKCS12"])
def test_broker_and_client_read_stores(tmp_path: Path, kind: str) -> None:
    security = DevelopmentSecurity(tmp_path / "own", "SSL", client_auth="required")
    of_broker, of_client = stores(security, kind)
    broker = BrokerProcess(tmp_path / "data", None, security)
    for name in [key for key in broker.settings if key.startswith("ssl.")]:
        del broker.settings[name]
    broker.settings.update(of_broker)
    broker.start()
    try:
        with Admin({"bootstrap.servers": broker.bootstrap, "security.protocol": "SSL", **of_client}) as admin:
            admin.list_topics()
    finally:
        broker.stop()


def test_jks_is_refused_with_the_line_that_converts_it(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed" + bytes(40))
    settings = {"bootstrap.servers": "localhost:1", "security.protocol": "SSL"}
    with pytest.raises(ConfigError, match=r"keytool -importkeystore"):
        Admin({**settings, "ssl.truststore.location": str(store)})


def test_certificate_is_replaced_by_a_dynamic_setting(tmp_path: Path) -> None:
    security = DevelopmentSecurity(tmp_path / "own", "SSL")
    broker = BrokerProcess(tmp_path / "data", None, security)
    broker.start()
    try:
        host, _, port = broker.bootstrap.rpartition(":")

        def shown() -> bytes:
            context = ssl.create_default_context(cafile=str(tmp_path / "own" / "ca.pem"))
            with context.wrap_socket(
                socket.create_connection((host, int(port)), 10), server_hostname=host
            ) as peer:
                return peer.getpeercert(binary_form=True) or b""

        before = shown()
        new = make_certificate(tmp_path / "own", "second", ("localhost", "127.0.0.1"))
        name = "listener.name.ssl.ssl.keystore.location"
        entry = ConfigEntry(name, str(new.key_store), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        admin = AdminClient(broker.librdkafka_settings)
        admin.incremental_alter_configs([resource])[resource].result(30)
        eventually(lambda: shown() != before)
    finally:
        broker.stop()


def strandline(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "strandline", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_certs_and_format_prepare_a_secured_broker(tmp_path: Path) -> None:
    made = strandline("certs", "certs", "--server", "localhost", "--client", "alice", directory=tmp_path)
    assert made.returncode == 0, made.stderr
    stores_made = sorted(path.name for path in (tmp_path / "certs").iterdir())
    assert {"ca.pem", "server.pem", "alice.pem"} <= set(stores_made), stores_made
    (tmp_path / "password").write_text("from a file\n")
    config = tmp_path / "server.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\nlisteners=SASL_SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        "controller.quorum.voters=1@127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT\n"
        "inter.broker.listener.name=SASL_SSL\nsasl.enabled.mechanisms=SCRAM-SHA-512\n"
        "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={tmp_path}/certs/server.pem\n"
        f"log.dirs={tmp_path}/data\n"
    )
    user = f"SCRAM-SHA-512=[name=admin,password-file={tmp_path}/password]"
    formatted = strandline("format", "--config", str(config), "--add-scram", user, directory=tmp_path)
    assert formatted.returncode == 0, formatted.stderr
    assert "from a file" not in formatted.stdout + formatted.stderr
    server = subprocess.Popen(
        [sys.executable, "-m", "strandline", "server", "--config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        ready = server.stdout.readline()
        address = ready.partition("bootstrap.servers=")[2].split()[0].replace("127.0.0.1", "localhost")
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="admin" password="from a file";',
            "ssl.truststore.location": f"{tmp_path}/certs/ca.pem",
            "ssl.endpoint.identification.algorithm": "",
        }
        with Admin(settings) as admin:
            admin.list_topics()
    finally:
        server.terminate()
        server.wait(30)
        assert server.stdout is not None
        server.stdout.close()
