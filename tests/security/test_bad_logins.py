"""Peers that do not log in as they should: Kafka's code or a closed connection, and others go on."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from strandline.base.errors import ErrorCode
from strandline.client.errors import AuthenticationError, ConfigError
from strandline.client.sync import Admin, Producer
from strandline.node.development_certificates import make_certificate
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess, running_broker
from strandline.testing.clusters import wait_until
from strandline.wire.api.k03_metadata import MetadataRequest
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.codec import decode
from tests.security.raw_logins import WAIT_S, begin, connect, log_in, receive, send

DEADLINE_S = 2.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    plain = DevelopmentSecurity(tmp_path_factory.mktemp("plain"), "SASL_PLAINTEXT", "PLAIN")
    settings = {
        "strandline_request_receive_timeout_ms": str(int(DEADLINE_S * 1000)),
        "connections_max_reauth_ms": "3000",
    }
    with running_broker(security=plain, **settings) as started:
        yield started


@pytest.fixture(scope="module")
def security(tmp_path_factory: pytest.TempPathFactory) -> DevelopmentSecurity:
    return DevelopmentSecurity(tmp_path_factory.mktemp("security"), "SASL_SSL", "SCRAM-SHA-256")


@pytest.fixture(scope="module")
def tls_broker(security: DevelopmentSecurity) -> Iterator[BrokerProcess]:
    deadline = str(int(DEADLINE_S * 1000))
    with running_broker(security=security, strandline_request_receive_timeout_ms=deadline) as started:
        yield started
        with Producer(started.client_settings) as producer:  # whatever was tried, it serves
            producer.send("after", b"x").result(WAIT_S)


def test_request_before_the_login_closes_the_connection(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        send(peer, MetadataRequest(topics=None, allow_auto_topic_creation=False), 4)
        assert receive(peer) == b""


def test_request_between_handshake_and_login_closes_the_connection(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        begin(peer, "PLAIN")
        send(peer, MetadataRequest(topics=None, allow_auto_topic_creation=False), 4)
        assert receive(peer) == b""


def test_the_error_about_an_unknown_mechanism_lists_the_known_ones(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        response = begin(peer, "GSSAPI")
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert "SCRAM-SHA-256" in response.mechanisms
        assert receive(peer) == b""


def test_failed_login_is_delayed_and_closed(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        begin(peer, "PLAIN")
        began = time.monotonic()
        send(peer, SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 1)
        response = decode(SaslAuthenticateResponse, 1, memoryview(receive(peer)), 4)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert time.monotonic() - began >= 0.1
        assert receive(peer) == b""


def test_messages_without_headers_log_in_after_version_0_of_the_handshake(broker: BrokerProcess) -> None:
    assert broker.security is not None
    with connect(broker) as peer:
        assert begin(peer, "PLAIN", version=0).error_code == ErrorCode.NONE
        message = f"\0{broker.security.user}\0{broker.security.password}".encode()
        peer.sendall(struct.pack(">i", len(message)) + message)
        assert receive(peer) == b""  # a challenge without contents
        send(peer, MetadataRequest(topics=(), allow_auto_topic_creation=False), 4)
        assert len(receive(peer)) > 4


def test_frame_that_is_too_large_before_the_login_closes_the_connection(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        peer.sendall(struct.pack(">i", 600_000) + b"x" * 100)
        assert receive(peer) == b""


def test_client_that_does_not_log_in_is_closed_in_time(broker: BrokerProcess) -> None:
    began = time.monotonic()
    with connect(broker) as peer:
        begin(peer, "PLAIN")
        assert receive(peer) == b""
    assert DEADLINE_S * 0.9 <= time.monotonic() - began < WAIT_S


def test_session_ends_for_a_client_that_does_not_log_in_again(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        assert 0 < log_in(peer, broker).session_lifetime_ms <= 3000
        time.sleep(3.2)
        send(peer, MetadataRequest(topics=(), allow_auto_topic_creation=False), 4)
        assert receive(peer) == b""


def test_own_client_logs_in_again_on_the_same_connection(broker: BrokerProcess) -> None:
    ended = broker.log_text.count("the session has ended")
    with Producer(broker.client_settings) as producer:
        deadline = time.monotonic() + 7
        while time.monotonic() < deadline:
            producer.send("renewed", b"x").result(WAIT_S)
            time.sleep(0.05)
    assert broker.log_text.count("the session has ended") == ended


def test_another_user_cannot_take_over_a_session(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        log_in(peer, broker)
        time.sleep(1.1)
        begin(peer, "PLAIN")
        assert broker.settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
        jaas = broker.settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
        password = jaas.partition('user_node="')[2].partition('"')[0]
        send(peer, SaslAuthenticateRequest(auth_bytes=f"\0node\0{password}".encode()), 1)
        response = decode(SaslAuthenticateResponse, 1, memoryview(receive(peer)), 4)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "Cannot change principals" in (response.error_message or "")


def test_plain_text_to_a_tls_port_is_named(tls_broker: BrokerProcess) -> None:
    with connect(tls_broker) as peer:
        send(peer, MetadataRequest(topics=(), allow_auto_topic_creation=False), 4)
        assert receive(peer) == b""
    wait_until(lambda: "plain text came to a port that speaks TLS" in tls_broker.log_text)


def test_half_open_handshakes_end_in_time_and_others_are_served(tls_broker: BrokerProcess) -> None:
    peers = [connect(tls_broker) for _ in range(200)]
    try:
        for peer in peers[::2]:
            peer.sendall(b"\x16\x03\x01")
        with Producer(tls_broker.client_settings) as producer:
            producer.send("meanwhile", b"x").result(WAIT_S)
        for peer in peers:
            assert receive(peer) == b""
    finally:
        for peer in peers:
            peer.close()


def test_garbage_instead_of_a_handshake_closes_the_connection(tls_broker: BrokerProcess) -> None:
    for garbage in (b"\x16\x03\x01\x00\x05hello", b"\x00" * 64, b"GET / HTTP/1.1\r\n\r\n", b"\x16" * 70_000):
        with connect(tls_broker) as peer:
            peer.sendall(garbage)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(1000):
                pass


def test_client_refuses_a_broker_of_another_authority(tls_broker: BrokerProcess, tmp_path: Path) -> None:
    foreign = make_certificate(tmp_path, "other")
    settings = tls_broker.client_settings | {"ssl.truststore.location": str(foreign.authority)}
    began = time.monotonic()
    with pytest.raises(AuthenticationError, match="certificate is refused"), Admin(settings) as admin:
        admin.list_topics()
    assert time.monotonic() - began < WAIT_S


def test_client_refuses_a_certificate_of_another_host(tmp_path: Path) -> None:
    security = DevelopmentSecurity(tmp_path, "SSL")
    make_certificate(tmp_path, "server", ["broker.example.com"])
    with running_broker(security=security) as started:
        with pytest.raises(AuthenticationError, match="mismatch"), Admin(started.client_settings) as admin:
            admin.list_topics()
        unchecked = started.client_settings | {"ssl.endpoint.identification.algorithm": ""}
        with Admin(unchecked) as admin:
            admin.list_topics()


@pytest.mark.parametrize("days", [-2, 10])
def test_broker_refuses_expired_and_foreign_certificates(tmp_path: Path, days: int) -> None:
    security = DevelopmentSecurity(tmp_path / "own", "SSL", client_auth="required")
    other = tmp_path / "own" if days < 0 else tmp_path / "foreign"
    bad = make_certificate(other, "mallory", days=days)
    with running_broker(security=security) as started:
        host, _, port = started.bootstrap.rpartition(":")
        context = ssl.create_default_context(cafile=str(tmp_path / "own" / "ca.pem"))
        context.load_cert_chain(bad.key_store)
        raw = socket.create_connection((host, int(port)), WAIT_S)
        with pytest.raises(ssl.SSLError):
            _talk(raw, context, host)
        wait_until(lambda: "the client's certificate is refused" in started.log_text)


def _talk(raw: socket.socket, context: ssl.SSLContext, host: str) -> None:
    with context.wrap_socket(raw, server_hostname=host) as peer:
        send(peer, MetadataRequest(topics=(), allow_auto_topic_creation=False), 4)
        while peer.recv(1000):
            pass


def test_wrong_password_is_an_authentication_error_at_once(tls_broker: BrokerProcess) -> None:
    settings = tls_broker.client_settings
    assert tls_broker.security is not None
    wrong = settings | {
        "sasl.jaas.config": settings["sasl.jaas.config"].replace(tls_broker.security.password, "hunter2")
    }
    with pytest.raises(AuthenticationError) as failed, Admin(wrong) as admin:
        admin.list_topics()
    assert "hunter2" not in str(failed.value)


def test_settings_that_cannot_log_in_are_refused_without_secrets() -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT"}
    with pytest.raises(ConfigError, match=r"sasl\.enabled\.mechanisms"), Admin(settings):
        pass
    settings |= {"sasl.mechanism": "PLAIN", "sasl.jaas.config": 'x required password="hunter2"'}
    with pytest.raises(ConfigError) as refused, Admin(settings):
        pass
    assert "hunter2" not in str(refused.value)


def test_scram_users_are_made_changed_and_removed(tls_broker: BrokerProcess) -> None:
    admin = AdminClient(tls_broker.librdkafka_settings)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", info, b"pw1")])["bob"].result(
        WAIT_S
    )
    described = admin.describe_user_scram_credentials(["bob"])["bob"].result(WAIT_S)
    assert [each.iterations for each in described.scram_credential_infos] == [8192]
    as_bob = tls_broker.librdkafka_settings | {"sasl.username": "bob", "sasl.password": "pw1"}
    assert AdminClient(as_bob).list_topics(timeout=WAIT_S).brokers
    few = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 100)
    with pytest.raises(KafkaException):
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", few, b"pw")])["bob"].result(
            WAIT_S
        )
    gone = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([gone])["bob"].result(WAIT_S)
    with pytest.raises(KafkaException):
        admin.describe_user_scram_credentials(["bob"])["bob"].result(WAIT_S)
