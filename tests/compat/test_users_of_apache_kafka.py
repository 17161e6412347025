"""SCRAM users and delegation tokens in a data directory: made by Apache Kafka, used and changed by us, and back."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from strandline.client.errors import AuthenticationError
from strandline.client.sync import Admin
from strandline.testing import BrokerProcess
from strandline.testing.clusters import free_ports
from strandline.wire.api.k38_create_delegation_token import CreateDelegationTokenRequest
from tests.compat.acl_brokers import logged_in, settings
from tests.compat.server import STRANDLINE, compat_target
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.waiting import eventually

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.xdist_group("apache-kafka"),
    pytest.mark.skipif(compat_target() != STRANDLINE, reason="it is about Strandline on Kafka's files"),
]

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def set_password(plain: str, user: str, password: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin = AdminClient({"bootstrap.servers": plain, "log_level": 0})
    change = UserScramCredentialUpsertion(user, info, password.encode())
    admin.alter_user_scram_credentials([change])[user].result(30)


def make_token(address: str) -> tuple[str, str]:
    with logged_in(address, "alice") as client:
        made: Any = client.call(CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1), 1)
    assert made.error_code == 0
    return made.token_id, b64encode(made.hmac).decode()


def logs_in(address: str, user: str, password: str, *, is_token: bool = False) -> bool:
    token = ' tokenauth="true"' if is_token else ""
    login = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'ScramLoginModule required username="{user}" password="{password}"{token};',
    }
    try:
        with Admin(login) as admin:
            admin.list_topics()
    except AuthenticationError:
        return False
    return True


def test_users_and_tokens_go_to_strandline_and_back(java: Path, kafka_jars: Path, tmp_path: Path) -> None:
    sasl_port, plain_port, controller_port = free_ports(3)
    address, plain = f"127.0.0.1:{sasl_port}", f"127.0.0.1:{plain_port}"
    given = settings(sasl_port, plain_port, controller_port) | {
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        "super.users": "User:admin;User:node;User:ANONYMOUS",
        "log.dirs": str(tmp_path / "data"),
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
    }
    kafka = ApacheKafka(
        java=java,
        jars=kafka_jars,
        directory=tmp_path / "kafka",
        settings=given,
        jvm_options=QUICK_START,
        broker_port=plain_port,
    )
    with kafka:
        set_password(plain, "carol", "first")
        eventually(lambda: logs_in(address, "carol", "first"))
        of_kafka = make_token(address)
        eventually(lambda: logs_in(address, *of_kafka, is_token=True))
    ours = BrokerProcess(tmp_path / "data", given | {"process.roles": "broker,controller", "node.id": "1"})
    ours.start()
    try:
        assert logs_in(address, "carol", "first")
        assert not logs_in(address, "carol", "guess")
        assert logs_in(address, *of_kafka, is_token=True)
        set_password(plain, "carol", "second")
        set_password(plain, "dave", "new")
        eventually(lambda: logs_in(address, "dave", "new"))
        of_ours = make_token(address)
    finally:
        ours.stop()
    with kafka:
        assert logs_in(address, "carol", "second")
        assert not logs_in(address, "carol", "first")
        assert logs_in(address, "dave", "new")
        assert logs_in(address, *of_kafka, is_token=True)
        assert logs_in(address, *of_ours, is_token=True)
