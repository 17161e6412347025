"""The pages of docs/operating about one kind of listener each: their settings start a broker, and clients log in."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.client.sync import Admin
from strandline.config import parse_properties
from strandline.testing.clusters import free_ports

PAGES = sorted((Path(__file__).parents[2] / "docs" / "operating").glob("listener-*.md"))


def strandline(directory: Path, line: str) -> None:
    words = [word.strip("'") for word in re.findall(r"'[^']*'|[^ ]+", line)]
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_of_the_page_work(page: Path, tmp_path: Path) -> None:
    port, controller_port = free_ports(2)
    text = page.read_text().replace("/etc/strandline", str(tmp_path))
    text = text.replace(":9093", f":{port}").replace(":9094", f":{controller_port}")
    broker, client, librdkafka = re.findall(r"```properties\n(.*?)```", text, re.DOTALL)
    (tmp_path / "server.properties").write_text(broker)
    (tmp_path / "alice.password").write_text("secret\n")
    commands = re.search(r"```\n(strandline .*?)```", text, re.DOTALL)
    assert commands is not None
    *preparing, serving = commands[1].splitlines()
    for line in preparing:
        strandline(tmp_path, line)
    server = subprocess.Popen(
        [sys.executable, "-m", *serving.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stderr is not None
    try:
        ready = server.stdout.readline()
        assert ready.startswith("ready"), server.stderr.read()
        where = {"bootstrap.servers": f"localhost:{port}"}
        ours = {entry.key: entry.value for entry in parse_properties(client)}
        with Admin({**where, **ours}) as admin:
            admin.list_topics()
        theirs = {entry.key: entry.value for entry in parse_properties(librdkafka)}
        assert AdminClient({**where, **theirs}).list_topics(timeout=30).brokers
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()
        server.stderr.close()
