"""Go's and Node's clients and kcat over secured listeners: records, groups, transactions.

By default over SASL_SSL with SCRAM and client certificates; over every kind of listener with STRANDLINE_SOAK=1.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.testing import BrokerProcess
from tests.oracle.fetch import GO_CLIENTS, KCAT, NODE_CLIENTS
from tests.oracle.require import require
from tests.properties.effort import IS_SOAK
from tests.security.kinds import KINDS, name_of, secured_broker

pytestmark = pytest.mark.oracle

RECORDS, CODECS = 200, 5
SECONDS_MAX = 240


@pytest.fixture(scope="module", params=KINDS if IS_SOAK else KINDS[-1:], ids=name_of)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with secured_broker(request.param, tmp_path_factory.mktemp("security")) as started:
        yield started


def environment(broker: BrokerProcess) -> dict[str, str]:
    names = {
        "ssl.ca.location": "SSL_CA",
        "ssl.key.location": "SSL_KEY_STORE",
        "sasl.mechanism": "SASL_MECHANISM",
        "sasl.username": "SASL_USERNAME",
        "sasl.password": "SASL_PASSWORD",
    }
    settings = broker.librdkafka_settings
    return {**os.environ, **{name: settings[key] for key, name in names.items() if key in settings}}


def run(program: list[str], directory: Path, broker: BrokerProcess, prefix: str) -> dict[str, int]:
    done = subprocess.run(
        [*program, broker.bootstrap, prefix],
        cwd=directory,
        env=environment(broker),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_franz_go(broker: BrokerProcess, strandline_topic: str) -> None:
    directory = require(GO_CLIENTS)
    counts = run([str(directory / "goclients"), "franz-secured"], directory, broker, strandline_topic)
    everything = RECORDS * CODECS
    assert counts.pop("aborted") > 0
    assert counts == {"produced": everything, "group": everything, "copied": everything}


def test_sarama(broker: BrokerProcess, strandline_topic: str) -> None:
    directory = require(GO_CLIENTS)
    counts = run([str(directory / "goclients"), "sarama-secured"], directory, broker, strandline_topic)
    assert counts == {"produced": RECORDS * CODECS, "group": RECORDS * CODECS, "committed": 4}


def test_kafkajs(broker: BrokerProcess, strandline_topic: str) -> None:
    directory = require(NODE_CLIENTS)
    counts = run(["node", "story.js", "kafkajs-secured"], directory, broker, strandline_topic)
    assert counts == {"produced": RECORDS, "group": RECORDS, "committed": 4}


def test_kcat(broker: BrokerProcess, strandline_topic: str) -> None:
    assert broker.security is not None
    broker.security.write_client_properties(broker.bootstrap)
    kcat = [str(require(KCAT)), "-F", str(broker.security.directory / "librdkafka.properties")]
    lines = [f"line {number}" for number in range(RECORDS)]
    for arguments, given in (
        (["-P", "-t", strandline_topic], "\n".join(lines)),
        (["-C", "-e", "-q", "-o", "beginning", "-t", strandline_topic], ""),
    ):
        done = subprocess.run(
            [*kcat, *arguments], input=given, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
        assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == sorted(lines)
