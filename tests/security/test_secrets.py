"""A run with every kind of secret, and then a search for them in everything that people are shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from strandline.client.sync import Admin, Producer
from strandline.node.development_security import DevelopmentSecurity
from strandline.node.disk import RealDisk
from strandline.storage.dumping import read_batches
from strandline.testing import running_broker
from strandline.wire.record_batch import records_in
from strandline.wire.records.framing import decode_metadata_record
from strandline.wire.records.metadata import UserScramCredentialRecord
from strandline.wire.schema import Message

WAIT_S = 15.0
TOKEN_SECRET = "the-secret-of-tokens"
KEY_PASSWORD = "the-password-of-a-key"


def _metadata(data: Path) -> list[Message]:
    """Every record of the metadata log."""
    found: list[Message] = []
    for file in sorted((data / "__cluster_metadata-0").glob("*.log")):
        for _, header, batch in read_batches(RealDisk(), str(file)):
            if not header.is_control:
                found += [decode_metadata_record(record.value or b"") for record in records_in(batch)]
    return found


def _strandline(*arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "strandline", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.stdout + ran.stderr


def test_no_secret_is_shown(tmp_path: Path) -> None:
    security = DevelopmentSecurity(tmp_path / "security", "SASL_SSL", "SCRAM-SHA-256")
    data = tmp_path / "data"
    more = {"delegation_token_secret_key": TOKEN_SECRET, "ssl_key_password": KEY_PASSWORD}
    with running_broker(data_dir=data, security=security, **more) as broker:
        settings = broker.client_settings
        with Producer(settings) as producer:
            producer.send("t", b"x").result(WAIT_S)
        wrong = {
            **settings,
            "sasl.jaas.config": settings["sasl.jaas.config"].replace(security.password, "wrong-one"),
        }
        shown = []
        try:
            with Admin(wrong) as admin:
                admin.list_topics()
        except Exception as error:
            shown.append(repr(error) + str(error))
        admin_client = AdminClient(broker.librdkafka_settings)
        resource = ConfigResource(ResourceType.BROKER, "1")
        described = admin_client.describe_configs([resource])[resource].result(WAIT_S)
        jaas = described["listener.name.sasl_ssl.plain.sasl.jaas.config"]
        assert jaas.value is None
        assert jaas.is_sensitive
        shown += [f"{entry.name}={entry.value}" for entry in described.values()]
        command = Path(f"/proc/{broker.pid}/cmdline")
        if command.exists():
            shown.append(command.read_text())
        shown.append(repr(security) + repr(broker) + repr(producer))
    shown.append(broker.log_text)
    metadata = data / "__cluster_metadata-0"
    for file in sorted(metadata.glob("*.log")):
        shown.append(_strandline("log", "dump", str(file), "--records"))
    shown.append(_strandline("log", "dump", str(metadata), "--records"))
    node_password = (tmp_path / "security" / "broker.password").read_text()
    everything = "\n".join(shown)
    for secret in (security.password, node_password, "wrong-one", TOKEN_SECRET, KEY_PASSWORD):
        assert secret not in everything
    assert "UserScramCredentialRecord alice" in everything
    records = [each for each in _metadata(data) if isinstance(each, UserScramCredentialRecord)]
    assert records
    for record in records:
        for key in (record.stored_key, record.server_key):
            assert key[:8].decode("utf-8", "backslashreplace") not in everything
