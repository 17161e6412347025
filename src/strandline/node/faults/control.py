"""The faults of one node, set by commands of plain values: over the pipe of a test, over HTTP, or by a call.

A command is a dictionary with `do`; the response is a dictionary too. FaultError says what is wrong with a command.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from strandline.node.faults.clock import MovableClock
from strandline.node.faults.disk import SwitchedDisk, parse_disk_fault
from strandline.node.faults.links import Address, CutLinks
from strandline.node.faults.requests import RequestFaults
from strandline.node.faults.rule import FaultError, parse_rule
from strandline.ports.clock import Clock

LINE_BYTES_MAX: Final = 1024 * 1024


class FaultControl:
    """The switches of a node that was made with faults and has started."""

    def __init__(
        self,
        disk: SwitchedDisk,
        clock: Clock,
        links: CutLinks,
        requests: RequestFaults,
        observe: Callable[[list[tuple[str, int]]], dict[str, Any]],
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._links = links
        self.requests = requests
        self._observe = observe
        self._commands: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "set": lambda command: self.requests.add(parse_rule(command["fault"])).status(),
            "status": lambda command: self.requests.find(command["id"]).status(),
            "list": self._list,
            "release": self._release,
            "clear": lambda command: self.requests.clear(command["id"]).status(),
            "clear_all": self._clear_all,
            "disk": self._set_disk,
            "cut": self._cut,
            "heal": self._heal,
            "advance": self._advance,
            "observe": lambda command: self._observe(
                [(topic, index) for topic, index in command["partitions"]]
            ),
        }

    def do(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Carries a command out, on the loop of the node."""
        name = command.get("do")
        if not isinstance(name, str) or name not in self._commands:
            raise FaultError(f"there is no command {name!r}: there is {', '.join(self._commands)}")
        try:
            return self._commands[name](command)
        except KeyError as error:
            raise FaultError(f"the command {name} needs {error}") from None

    def _list(self, _: Mapping[str, Any]) -> dict[str, Any]:
        fault = self._disk.switch.fault
        disk = None if fault is None else {"kind": fault.kind, "fired": fault.fired}
        return {
            "faults": [fault.status() for fault in self.requests.all()],
            "disk": disk,
            "links": self._links.status(),
            "ahead_seconds": self._clock.ahead_s if isinstance(self._clock, MovableClock) else 0,
        }

    def _release(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.release(command["id"])
        return self.requests.find(command["id"]).status()

    def _clear_all(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.clear_all()
        self._disk.switch.fault = None
        self._links.heal()
        return {}

    def _set_disk(self, command: Mapping[str, Any]) -> dict[str, Any]:
        before = self._disk.switch.fault
        described = command["fault"]
        self._disk.switch.fault = None if described is None else parse_disk_fault(described)
        return {"fired": 0 if before is None else before.fired}

    def _cut(self, command: Mapping[str, Any]) -> dict[str, Any]:
        cut_by(self._links, command)
        return {"links": self._links.status()}

    def _heal(self, command: Mapping[str, Any]) -> dict[str, Any]:
        named = command.get("addresses")
        self._links.heal(None if named is None else [_address(each) for each in named])
        return {"links": self._links.status()}

    def _advance(self, command: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(self._clock, MovableClock):
            raise FaultError("the clock of this broker is the machine's: start it with a clock that moves")
        seconds = command["seconds"]
        if not isinstance(seconds, int | float) or seconds < 0:
            raise FaultError(f"time goes ahead by a number of seconds, not by {seconds!r}")
        self._clock.advance(seconds)
        return {"ahead_seconds": self._clock.ahead_s}


def cut_by(links: CutLinks, command: Mapping[str, Any]) -> None:
    """Cuts the links to the addresses that the command names, both ways unless it says otherwise."""
    links.cut(
        [_address(each) for each in command["addresses"]],
        outbound=bool(command.get("outbound", True)),
        inbound=bool(command.get("inbound", True)),
    )


def _address(text: str) -> Address:
    host, colon, port = str(text).rpartition(":")
    if not colon or not port.isdecimal():
        raise FaultError(f"{text!r} is not host:port")
    return host.strip("[]"), int(port)


async def serve_control(control: FaultControl, channel: socket.socket) -> None:
    """Carries out commands, one JSON object on each line, until the other side closes the socket."""
    channel.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=LINE_BYTES_MAX)
    try:
        while line := await reader.readline():
            writer.write(json.dumps(respond(control, line)).encode() + b"\n")
    finally:
        writer.close()


def respond(control: FaultControl, line: bytes) -> dict[str, Any]:
    """Carries out a command and returns its response as JSON: the result, or the error."""
    try:
        command = json.loads(line)
        if not isinstance(command, dict):
            raise FaultError("a command is a JSON object")
        return control.do(command)
    except ValueError as error:
        return {"error": str(error)}
    except Exception as error:  # one command that goes wrong must not end the pipe for those after it
        return {"error": f"the command failed: {error!r}"}
