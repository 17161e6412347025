"""Logins by token: OAUTHBEARER with signed tokens, and delegation tokens."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import jwt
import pytest
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from strandline.base.errors import ErrorCode
from strandline.client.errors import AuthenticationError
from strandline.client.sync import Admin
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess
from strandline.wire.api.k38_create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from strandline.wire.api.k40_expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from strandline.wire.codec import decode
from tests.security.raw_logins import connect, log_in, receive, send

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())
WAIT_S = 15.0


def token(key: Any = KEY, headers: Any = None, **claims: Any) -> str:
    now = int(time.time())
    payload = {"sub": "carol", "iat": now, "exp": now + 300, "aud": "kafka", "iss": "tests", **claims}
    return jwt.encode(payload, key, algorithm="ES256", headers=headers or {"kid": "k1"})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("security")
    public = json.loads(ECAlgorithm.to_jwk(KEY.public_key())) | {"kid": "k1", "use": "sig"}
    (directory / "jwks.json").write_text(json.dumps({"keys": [public]}))
    security = DevelopmentSecurity(directory, "SASL_PLAINTEXT", "PLAIN")
    prefix = "listener.name.sasl_plaintext."
    settings = {
        f"{prefix}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{directory}/jwks.json",
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "tests",
        "delegation.token.secret.key": "shared by all nodes",
    }
    process = BrokerProcess(directory / "data", settings, security)
    process.format()
    process.start()
    try:
        yield process
    finally:
        process.stop()


def settings(broker: BrokerProcess, bearer: object) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token": bearer,
    }


def test_signed_token_logs_in(broker: BrokerProcess) -> None:
    with Admin(settings(broker, token)) as admin:
        admin.list_topics()
    theirs = AdminClient(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token(), time.time() + 300),
        }
    )
    theirs.poll(1)
    assert theirs.list_topics(timeout=WAIT_S).brokers


@pytest.mark.parametrize(
    "bad",
    [
        token(OTHER_KEY),
        token(exp=int(time.time()) - 3600),
        token(aud="others"),
        token(iss="others"),
        token(sub=""),
        jwt.encode({"sub": "carol", "exp": int(time.time()) + 300}, None, algorithm="none"),
        jwt.encode(
            {"sub": "carol", "exp": int(time.time()) + 300}, KEY, algorithm="ES256", headers={"kid": "k2"}
        ),
        "no.token.at.all",
    ],
    ids=["another key", "expired", "audience", "issuer", "no subject", "unsigned", "unknown key", "garbage"],
)
def test_other_tokens_are_refused(broker: BrokerProcess, bad: str) -> None:
    with pytest.raises(AuthenticationError) as refused, Admin(settings(broker, bad)) as admin:
        admin.list_topics()
    assert bad not in str(refused.value)
    assert bad not in broker.log_text


class Provider(BaseHTTPRequestHandler):
    """An identity provider: its keys, and tokens for one client."""

    keys: ClassVar[list[object]] = []
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._respond(200, {"keys": self.keys})

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["content-length"])).decode()
        self.asked.append(form)
        if self.headers["authorization"] != "Basic " + b64encode(b"robot:its secret").decode():
            self._respond(401, {"error": "invalid_client"})
        else:
            self._respond(200, {"access_token": token(headers={"kid": "web"}), "expires_in": 300})

    def _respond(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    Provider.keys.append(json.loads(ECAlgorithm.to_jwk(KEY.public_key())) | {"kid": "web", "use": "sig"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def token_broker(directory: Path, provider: str) -> BrokerProcess:
    settings = {
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"{provider}/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
    }
    return BrokerProcess(
        directory / "data", settings, DevelopmentSecurity(directory, "SASL_PLAINTEXT", "PLAIN")
    )


def test_keys_and_tokens_come_from_an_identity_provider(provider: str, tmp_path: Path) -> None:
    process = token_broker(tmp_path, provider)
    process.format()
    process.start()
    try:
        asking = {
            **settings(process, None),
            "sasl.oauthbearer.token.endpoint.url": f"{provider}/token",
            "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'clientId="robot" clientSecret="its secret" scope="kafka";',
        }
        del asking["sasl.oauthbearer.token"]
        with Admin(asking) as admin:
            admin.list_topics()
        assert Provider.asked == ["grant_type=client_credentials&scope=kafka"], (
            "one token for every connection"
        )
        theirs = AdminClient(
            {
                "bootstrap.servers": process.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "robot",
                "sasl.oauthbearer.client.secret": "its secret",
                "sasl.oauthbearer.scope": "kafka",
                "sasl.oauthbearer.token.endpoint.url": f"{provider}/token",
            }
        )
        assert theirs.list_topics(timeout=WAIT_S).brokers
        wrong = {**asking, "sasl.jaas.config": asking["sasl.jaas.config"].replace("its secret", "a guess")}
        with pytest.raises(AuthenticationError, match="status 401") as refused, Admin(wrong) as admin:
            admin.list_topics()
        assert "a guess" not in str(refused.value)
    finally:
        process.stop()


def test_node_does_not_start_without_the_keys_of_tokens(tmp_path: Path) -> None:
    process = token_broker(tmp_path, "http://127.0.0.1:9")
    process.format()
    try:
        with pytest.raises(RuntimeError, match=r"jwks\.endpoint\.url"):
            process.start()
    finally:
        process.stop()


def test_delegation_token_logs_in_until_it_is_expired(broker: BrokerProcess) -> None:
    with connect(broker) as peer:
        log_in(peer, broker)
        send(peer, CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1), 1)
        made = decode(CreateDelegationTokenResponse, 1, memoryview(receive(peer)), 4)
        assert made.error_code == ErrorCode.NONE
        assert (made.principal_name, len(made.hmac)) == ("alice", 64)
        secret = b64encode(made.hmac).decode()
        jaas = f'ScramLoginModule required username="{made.token_id}" password="{secret}" tokenauth="true";'
        by_token = broker.client_settings | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas}
        with Admin(by_token) as admin:
            admin.list_topics()
        send(peer, ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 1)
        ended = decode(ExpireDelegationTokenResponse, 1, memoryview(receive(peer)), 4)
        assert ended.error_code == ErrorCode.NONE
    with pytest.raises(AuthenticationError), Admin(by_token) as admin:
        admin.list_topics()
    assert secret not in broker.log_text
