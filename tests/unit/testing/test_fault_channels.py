"""The pipe to the process of a broker: a response that comes late is not taken for that to the next command."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

from strandline.node.faults.control import respond
from strandline.testing.fault_channels import BrokerGone, PipeControl


class Failing:
    def do(self, command: Any) -> dict[str, Any]:
        raise TypeError("not what was expected")


def test_late_response_is_not_that_to_the_next_command() -> None:
    ours, theirs = socket.socketpair()
    control = PipeControl(ours, seconds_max=0.05)
    with theirs:
        with pytest.raises(BrokerGone, match="did not respond within"):
            control.do({"do": "first"})
        commands = theirs.makefile("rwb")
        assert json.loads(commands.readline()) == {"do": "first"}
        ours.settimeout(30)

        def broker() -> None:
            assert json.loads(commands.readline()) == {"do": "second"}
            commands.write(b'{"to": "first"}\n{"to": "second"}\n')
            commands.flush()

        thread = threading.Thread(target=broker)
        thread.start()
        assert control.do({"do": "second"}) == {"to": "second"}
        thread.join()
        commands.close()
        control.close()


def test_broker_that_ended_is_told() -> None:
    ours, theirs = socket.socketpair()
    control = PipeControl(ours)
    theirs.close()
    with pytest.raises(BrokerGone):
        control.do({"do": "list"})
    control.close()


def test_command_that_fails_has_a_response_too() -> None:
    response = respond(Failing(), b"{}")  # type: ignore[arg-type]
    assert response == {"error": "the command failed: TypeError('not what was expected')"}
