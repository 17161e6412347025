"""A master of Spark that is not there is told at once, and not after a minute and a half."""

from __future__ import annotations

import socket

import pytest

from strandline.pipeline.runtime.session import NoMasterError, check_master, start_session


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_a_master_that_does_not_respond_is_named() -> None:
    url = f"spark://127.0.0.1:{free_port()},localhost:{free_port()}"
    with pytest.raises(NoMasterError, match=rf"the master {url} does not respond .*refused.*; localhost"):
        start_session("name", url, {})


def test_one_of_several_masters_is_enough() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        check_master(f"spark://127.0.0.1:{free_port()},127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["local[*]", "yarn", "k8s://https://10.0.0.1:6443"])
def test_other_masters_are_left_to_spark(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    asked: list[object] = []
    monkeypatch.setattr(socket, "create_connection", lambda *given: asked.append(given))
    check_master(master)
    assert not asked
