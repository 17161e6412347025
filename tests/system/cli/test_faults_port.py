"""`strandline up --faults-port`: faults over HTTP, for tests in other languages, from this machine only."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from strandline.client.sync import Admin, Producer
from strandline.testing.clusters import wait_until


@contextmanager
def up(data: Path, *options: str) -> Iterator[tuple[str, str]]:
    """Runs `up`, and yields its bootstrap address and its URL for faults."""
    command = [sys.executable, "-m", "strandline.cli.main", "up", "--port", "0", "--no-registry"]
    process = subprocess.Popen(
        [*command, "--data", str(data), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        bootstrap = re.search(r"bootstrap\.servers\s+(\S+)", said)
        faults = re.search(r"faults\s+(\S+) \(anybody on this machine can break this on purpose\)", said)
        assert bootstrap is not None, said
        yield bootstrap[1], "" if faults is None else faults[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


def ask(method: str, url: str, body: object = None, **headers: str) -> tuple[int, dict[str, Any]]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"content-type": "application/json", **headers}, method=method)
    try:
        with urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_faults_of_one_broker(tmp_path: Path) -> None:
    with (
        up(tmp_path / "data", "--faults-port", "0") as (bootstrap, url),
        Admin(bootstrap_servers=bootstrap) as admin,
    ):
        admin.create_topic("t", partitions=1)
        described = {"kind": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "topic": "t"}
        status, fault = ask("POST", f"{url}/faults", described)
        assert (status, fault["fired"]) == (201, 0)
        assert ask("GET", f"{url}/faults/{fault['id']}?fired=1&timeout_ms=50")[0] == 408
        with Producer(bootstrap_servers=bootstrap) as producer:
            assert producer.send("t", b"x").result(30).offset == 0
            assert ask("GET", f"{url}/faults/{fault['id']}?fired=1")[1]["fired"] == 1
            _, barrier = ask("POST", f"{url}/faults", {"kind": "barrier", "api": "Produce"})
            sent = producer.send("t", b"y")
            assert ask("GET", f"{url}/faults/{barrier['id']}?held=1")[1]["held"] == 1
            ask("POST", f"{url}/faults/{barrier['id']}/release")
            assert sent.result(30).offset == 1
        assert ask("PUT", f"{url}/disk", {"kind": "full"})[0] == 200
        assert ask("GET", f"{url}/faults")[1]["disk"]["kind"] == "full"
        assert ask("DELETE", f"{url}/disk")[0] == 200
        assert ask("DELETE", f"{url}/faults")[0] == 200
        assert ask("GET", f"{url}/faults")[1]["faults"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/faults", {"kind": "explode"}, 400, "there is no fault 'explode'"),
        ("POST", "/faults", [], 400, "not a JSON object"),
        ("GET", "/faults/7", None, 400, "there is no fault 7"),
        ("GET", "/faults/x", None, 400, "is not a number"),
        ("GET", "/elsewhere", None, 404, "there is nothing at GET /elsewhere"),
        ("PUT", "/disk", {"kind": "wet"}, 400, "a disk cannot be 'wet'"),
        ("GET", "/nodes/9/faults", None, 404, "there is no node 9"),
    ],
)
def test_the_response_to_a_wrong_request_names_the_mistake(
    one: str, method: str, path: str, body: object, status: int, said: str
) -> None:
    code, response = ask(method, f"{one}{path}", body)
    assert (code, said in response["error"]) == (status, True), response


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with up(tmp_path_factory.mktemp("up") / "data", "--faults-port", "0") as (_, url):
        yield url


def test_web_page_cannot_set_faults(one: str) -> None:
    described = {"kind": "disconnect"}
    assert ask("POST", f"{one}/faults", described, host="evil.example:80")[0] == 403
    assert ask("POST", f"{one}/faults", described, **{"content-type": "text/plain"})[0] == 400
    assert ask("GET", f"{one}/faults")[1]["faults"] == []


def test_without_the_option_nothing_is_opened(tmp_path: Path) -> None:
    with up(tmp_path / "data") as (_, url):
        assert url == ""


def test_nodes_and_links_of_a_cluster(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--nodes", "3", "--faults-port", "0") as (bootstrap, url):
        status, fault = ask(
            "POST", f"{url}/nodes/1/faults", {"kind": "delay", "milliseconds": 1, "times": None}
        )
        assert status == 201
        with Admin(bootstrap_servers=bootstrap) as admin:
            wait_until(lambda: len(admin.describe_cluster().nodes) == 3)
            assert ask("POST", f"{url}/links/cut", {"from": 1, "to": 2, "one_way": True})[0] == 200
            assert ask("POST", f"{url}/links/heal")[0] == 200
            assert ask("POST", f"{url}/nodes/3/pause")[0] == 200
            assert ask("POST", f"{url}/nodes/3/resume")[0] == 200
            assert ask("POST", f"{url}/nodes/3/kill")[0] == 200
            wait_until(lambda: len(admin.describe_cluster().nodes) == 2)
            assert ask("POST", f"{url}/nodes/3/pause")[0] == 409
            assert ask("POST", f"{url}/nodes/3/start")[0] == 200
            wait_until(lambda: len(admin.describe_cluster().nodes) == 3)
        with Admin(bootstrap_servers=bootstrap.split(",")[0]) as admin:  # its first requests go to node 1
            admin.list_topics()
        assert ask("GET", f"{url}/nodes/1/faults/{fault['id']}")[1]["fired"] > 0
        assert ask("POST", f"{url}/faults", {"kind": "disconnect"})[1]["error"].startswith("name the node")
        for wrong in (
            {"from": 1},
            {"from": 1, "to": 1},
            {"from": True, "to": 2},
            {"from": 1, "to": 2, "one_way": "false"},
            {"from": 1, "to": 2, "oneway": True},
        ):
            assert ask("POST", f"{url}/links/cut", wrong)[0] == 400
        assert ask("POST", f"{url}/nodes/3/pause")[0] == 200
        status, refused = ask("GET", f"{url}/nodes/3/faults")
        assert (status, refused["error"]) == (409, "the broker is paused: resume it first")
        assert ask("POST", f"{url}/nodes/3/resume")[0] == 200
        assert ask("GET", f"{url}/nodes/3/faults")[0] == 200
