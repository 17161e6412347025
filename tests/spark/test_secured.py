"""Spark over SASL_SSL with client certificates: source, sinks and pipelines, and no secret in plan, UI or event log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.client.sync import Admin, Producer
from strandline.testing import BrokerProcess
from tests.oracle.fetch import JAVA
from tests.oracle.require import require
from tests.properties.effort import IS_SOAK
from tests.security.kinds import secured_broker
from tests.security.load import read_all

pytestmark = pytest.mark.oracle

COUNT = 100
SECONDS_MAX = 400
DRIVER = """
import json, pathlib, sys, urllib.request
from pyspark.sql import SparkSession
import strandline.spark

settings, home = json.loads(sys.stdin.read()), pathlib.Path(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.ui.port", "0")
builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2")
builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
builder = builder.config("spark.eventLog.dir", f"file:{home}/events")
spark = strandline.spark.prepare(builder).getOrCreate()
options = {f"kafka.{name}": value for name, value in settings.items()}
stream = spark.readStream.format("strandline").options(**options, subscribe="in", startingOffsets="earliest").load()
query = (
    strandline.spark.exactly_once(
        stream.select("key", "value"), settings["bootstrap.servers"], topic="once", settings=settings
    )
    .option("checkpointLocation", f"{home}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
assert query.awaitTermination(200)
read = spark.read.format("strandline").options(**options, subscribe="once").load()
read.write.format("strandline").options(**options).option("topic", "again").mode("append").save()
read.explain(True)
base = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
for name in ("sql?details=true&planDescription=true", "environment", "jobs", "stages?details=true"):
    page = urllib.request.urlopen(f"{base}/{name}").read()
    (home / f"ui-{name.partition('?')[0]}.json").write_bytes(page)
spark.stop()
"""
PIPELINE = """
pipeline: secured
brokers: {bootstrap}
checkpoint: {home}/pipeline
trigger: once
client:
{client}
sources:
  rows:
    topic: in
    decode: {{format: raw}}
sinks:
  - from: rows
    topic: piped
    partitions: 1
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    kind = ("SASL_SSL", "SCRAM-SHA-512", "required")
    with secured_broker(kind, tmp_path_factory.mktemp("security")) as started:
        with Admin(started.client_settings) as admin:
            for topic in ("in", "once", "again"):
                admin.create_topic(topic)
        with Producer(started.client_settings) as producer:
            for number in range(COUNT):
                producer.send("in", b"%d" % number)
        yield started


def check_secrets(home: Path, broker: BrokerProcess) -> None:
    assert broker.security is not None
    secret = broker.security.password.encode()
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if secret in path.read_bytes()] == []


def test_source_and_sinks_show_no_secret(broker: BrokerProcess, tmp_path: Path) -> None:
    require(JAVA)
    (tmp_path / "events").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        input=json.dumps(broker.client_settings),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    (tmp_path / "output").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = sorted(b"%d" % number for number in range(COUNT))
    assert sorted(read_all(broker.librdkafka_settings, "once", COUNT)) == expected
    assert sorted(read_all(broker.librdkafka_settings, "again", COUNT)) == expected
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"ui-sql.json", "ui-environment.json", "output"} <= names
    check_secrets(tmp_path, broker)


@pytest.mark.skipif(not IS_SOAK, reason="starts another JVM: in make soak")
def test_pipeline_shows_no_secret(broker: BrokerProcess, tmp_path: Path) -> None:
    settings = {name: value for name, value in broker.client_settings.items() if name != "bootstrap.servers"}
    assert broker.security is not None
    secret = broker.security.password
    lines = [
        f"  {name}: {json.dumps(value.replace(secret, '${SECRET}'))}" for name, value in settings.items()
    ]
    spec = tmp_path / "spec.yaml"
    spec.write_text(PIPELINE.format(bootstrap=broker.bootstrap, home=tmp_path, client="\n".join(lines)))
    done = subprocess.run(
        [sys.executable, "-m", "strandline", "pipeline", "run", str(spec)],
        env={**os.environ, "SECRET": secret},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    (tmp_path / "output").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = sorted(b"%d" % number for number in range(COUNT))
    rows = [json.loads(row) for row in read_all(broker.librdkafka_settings, "piped", COUNT)]
    assert sorted(b64decode(row["value"]) for row in rows) == expected
    check_secrets(tmp_path, broker)
