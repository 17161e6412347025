"""TLS and logins on the registry's own port, and the registry that `up --secure` starts."""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import RegistryProcess, running_broker, running_registry

SCHEMA = json.dumps({"type": "record", "name": "R", "fields": []})


def ask(
    url: str, authority: Path, path: str, login: str | None, body: Any = None
) -> tuple[int, Any, dict[str, str]]:
    """Over TLS, checked against the authority."""
    host = url.removeprefix("https://")
    connection = HTTPSConnection(host, timeout=30, context=ssl.create_default_context(cafile=str(authority)))
    headers = {"Content-Type": "application/json"}
    if login is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    data = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, body=data, headers=headers)
    response = connection.getresponse()
    try:
        return response.status, json.loads(response.read()), dict(response.getheaders())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[DevelopmentSecurity, list[RegistryProcess]]]:
    """Two instances beside a broker with TLS and SCRAM."""
    home = tmp_path_factory.mktemp("secured")
    with running_broker(security="SASL_SSL") as broker, ExitStack() as stack:
        security = broker.security
        assert security is not None
        assert security.server is not None
        arguments = ["--command-config", str(security.write_client_properties(broker.bootstrap))]
        for setting in (
            "authentication.method=BASIC",
            f"ssl.keystore.location={security.server.key_store}",
            f"ssl.truststore.location={security.server.authority}",
        ):
            arguments += ["--set", setting]
        instances = [
            stack.enter_context(running_registry(broker.bootstrap, home / f"{name}.log", *arguments))
            for name in ("one", "two")
        ]
        yield security, instances


def test_a_request_needs_a_login_of_the_cluster(
    secured: tuple[DevelopmentSecurity, list[RegistryProcess]],
) -> None:
    security, (one, _) = secured
    assert security.server is not None
    authority = Path(security.server.authority)
    assert one.url.startswith("https://")
    for wrong in (None, "alice:wrong", "nobody:x", "alice", ":", 'al"ice:x'):
        status, body, headers = ask(one.url, authority, "/subjects", wrong)
        assert (status, body["error_code"]) == (401, 401), wrong
        assert headers["www-authenticate"] == 'Basic realm="SchemaRegistry"'
    login = f"{security.user}:{security.password}"
    assert ask(one.url, authority, "/subjects", login)[0] == 200


def test_writes_are_forwarded_over_tls_with_the_login(
    secured: tuple[DevelopmentSecurity, list[RegistryProcess]],
) -> None:
    security, instances = secured
    assert security.server is not None
    authority, login = Path(security.server.authority), f"{security.user}:{security.password}"
    ids = set()
    for each in instances:
        path = f"/subjects/{each.url.rpartition(':')[2]}/versions"
        status, body, _ = ask(each.url, authority, path, login, {"schema": SCHEMA})
        assert status == 200, body
        ids.add(body["id"])
    assert len(ids) == 1


def test_confluents_client_works_over_tls_with_a_login(
    secured: tuple[DevelopmentSecurity, list[RegistryProcess]],
) -> None:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    security, (one, _) = secured
    assert security.server is not None
    settings = {
        "url": one.url,
        "ssl.ca.location": str(security.server.authority),
        "basic.auth.user.info": f"{security.user}:{security.password}",
    }
    with SchemaRegistryClient(settings) as client:
        id = client.register_schema("by-confluent", Schema(SCHEMA, "AVRO"))
        assert client.get_schema(id).schema_type == "AVRO"


def test_logins_need_a_cluster_with_logins(strandline_broker: Any) -> None:
    command = [sys.executable, "-m", "strandline.cli.main", "registry", "-b", strandline_broker.bootstrap]
    found = subprocess.run(
        [*command, "--port", "0", "--set", "authentication.method=BASIC"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 2
    assert "security.protocol=SASL_SSL" in found.stderr


@pytest.mark.parametrize("nodes", [1, 3])
def test_up_secure_has_a_registry(tmp_path: Path, nodes: int) -> None:
    command = [sys.executable, "-m", "strandline.cli.main", "up", "--secure", "--port", "0", "--data", "data"]
    if nodes > 1:
        command += ["--nodes", str(nodes)]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stdout is not None
        url = ""
        for line in process.stdout:
            if "registry  " in line:
                url = line.split()[-1]
            if line.startswith("Schemas:"):
                break
        assert url.startswith("https://")
        shown = line.partition(":")[2].split()
        assert shown[:2] == ["strandline", "schemas"]
        deadline = time.monotonic() + 60
        while True:
            listed = subprocess.run(
                [sys.executable, "-m", "strandline.cli.main", *shown[1:]],
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            if listed.returncode == 0:
                break
            assert time.monotonic() < deadline, listed.stderr
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
