"""Faults for tests: a real broker that loses a response, refuses a request, or holds it until the test says so.

    with broker.faults.error("OffsetCommit", "NOT_COORDINATOR", group="g") as fault:
        consumer.commit()
        assert fault.fired == 1

A fault is set when it is made and cleared at the end of its `with` block, or by `clear()`. `async with` does the same.
Methods that wait come in pairs: `wait_fired` blocks, `await_fired` is awaited. Making a fault that can never strike
raises `FaultError`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from strandline.node.faults.rule import FaultError as FaultError

_POLL_SECONDS: Final = 0.005
SECONDS: Final = 10.0

Do = Callable[[Mapping[str, Any]], dict[str, Any]]


class BrokerFault:
    """A fault in requests that is set on a broker."""

    def __init__(self, do: Do, described: Mapping[str, Any]) -> None:
        self._do = do
        self._status = do({"do": "set", "fault": described})
        self._described = ", ".join(f"{name}={value}" for name, value in described.items())

    def __repr__(self) -> str:
        return f"BrokerFault({self._described})"

    def _ask(self, command: str = "status") -> dict[str, Any]:
        if not self._status["cleared"]:
            self._status = self._do({"do": command, "id": self._status["id"]})
        return self._status

    @property
    def fired(self) -> int:
        """The number of requests that it has struck."""
        return int(self._ask()["fired"])

    @property
    def seen(self) -> int:
        """The number of requests that match it, struck or not."""
        return int(self._ask()["seen"])

    @property
    def held(self) -> int:
        """The number of requests that are held at the barrier."""
        return int(self._ask()["held"])

    @property
    def strikes(self) -> list[dict[str, Any]]:
        """The requests that it has struck, up to a hundred: api, version, client_id, connection."""
        return list(self._ask()["strikes"])

    def assert_fired(self, times: int | None = None) -> None:
        """Raises AssertionError unless it has struck: at least once, or `times` times exactly."""
        fired = self.fired
        if not fired if times is None else fired != times:
            expected = "at all" if times is None else f"{times} times"
            raise AssertionError(
                f"{self} has not fired {expected}: {fired} fired, {self.seen} matching requests"
            )

    def release(self) -> None:
        """Lets the requests at a barrier go on, and later ones pass."""
        self._ask("release")

    def clear(self) -> None:
        """Removes the fault: requests that it holds go on, connections that it silenced end."""
        self._ask("clear")

    # Waiting

    def wait_fired(self, times: int = 1, timeout: float = SECONDS) -> None:
        """Blocks until it has struck `times` requests; raises TimeoutError after `timeout` seconds."""
        _wait(lambda: self.fired >= times, timeout, lambda: self._shortfall("fired", times))

    async def await_fired(self, times: int = 1, timeout: float = SECONDS) -> None:
        await _await(lambda: self.fired >= times, timeout, lambda: self._shortfall("fired", times))

    def wait_held(self, count: int = 1, timeout: float = SECONDS) -> None:
        """Blocks until `count` requests are at the barrier; raises TimeoutError after `timeout` seconds."""
        _wait(lambda: self.held >= count, timeout, lambda: self._shortfall("held", count))

    async def await_held(self, count: int = 1, timeout: float = SECONDS) -> None:
        await _await(lambda: self.held >= count, timeout, lambda: self._shortfall("held", count))

    def _shortfall(self, counter: str, count: int) -> str:
        status = self._status
        return f"{self} has {counter} {status[counter]} of {count}; matching requests: {status['seen']}"

    # Blocks

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear_if_there()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear_if_there()

    def _clear_if_there(self) -> None:
        """Clears the fault, unless the broker was killed within the block: then it has no faults any more."""
        from strandline.testing.fault_channels import BrokerGone

        try:
            self.clear()
        except (BrokerGone, FaultError):
            self._status = {**self._status, "cleared": True}


class BrokenDisk:
    """A disk that is full, slow or failing, until `clear` or the end of the `with` block."""

    def __init__(self, do: Do, described: Mapping[str, Any]) -> None:
        self._do = do
        self._fired: int | None = None
        do({"do": "disk", "fault": described})

    @property
    def fired(self) -> int:
        """The number of operations that it has struck."""
        if self._fired is not None:
            return self._fired
        disk = self._do({"do": "list"})["disk"]
        return 0 if disk is None else int(disk["fired"])

    def clear(self) -> None:
        if self._fired is None:
            self._fired = int(self._do({"do": "disk", "fault": None})["fired"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


class BrokerFaults:
    """The faults of one broker.

    These options say which requests a fault strikes: `api` (name or key), `version`, `topic`, `partition`, `group`,
    `transactional_id`, `client_id`, `connection` (a client's address), `from_nodes`. These say how often: the first one
    by default; `nth=3` begins with the third, `times=5` strikes five, `times=None` all until the fault is cleared, and
    `probability=0.1, seed=7` some of them.
    """

    def __init__(self, do: Do) -> None:
        self._do = do

    def error(self, api: str | int, error: str | int, **options: Any) -> BrokerFault:
        """Responds with an error code, by Kafka's name or number. The request is not applied, unless `applied=True`.

        With `topic` or `partition` only these have the error, and the rest of the request is applied.
        """
        return self._set("error", api=api, error=error, **options)

    def drop_request(self, api: str | int | None = None, **options: Any) -> BrokerFault:
        """Loses the request: it is not applied and has no response. Its connection stays open, but is silent from then
        on."""
        return self._set("drop_request", api=api, **options)

    def drop_response(self, api: str | int | None = None, **options: Any) -> BrokerFault:
        """Applies the request and loses its response. Its connection stays open, but is silent from then on."""
        return self._set("drop_response", api=api, **options)

    def disconnect(self, api: str | int | None = None, **options: Any) -> BrokerFault:
        """Closes the connection instead of responding; with `applied=True` after the request is applied."""
        return self._set("disconnect", api=api, **options)

    def delay(self, api: str | int | None = None, *, ms: int, **options: Any) -> BrokerFault:
        """Delays the request before it is applied; with `applied=True` delays its response."""
        return self._set("delay", api=api, milliseconds=ms, **options)

    def black_hole(self, api: str | int | None = None, **options: Any) -> BrokerFault:
        """Silences every connection with a matching request: it takes requests and never responds, until the fault is
        cleared."""
        return self._set("black_hole", api=api, **options)

    def throttle(self, api: str | int, *, ms: int, **options: Any) -> BrokerFault:
        """Responds that the client is over its quota, and does not read its connection for that time."""
        return self._set("throttle", api=api, milliseconds=ms, **options)

    def tear(self, api: str | int | None = None, *, bytes: int = 6, **options: Any) -> BrokerFault:
        """Applies the request, sends only the first bytes of its response, and closes the connection."""
        return self._set("tear", api=api, bytes=bytes, **options)

    def barrier(self, api: str | int | None = None, **options: Any) -> BrokerFault:
        """Holds the request until `release`; with `applied=True` holds its response."""
        return self._set("barrier", api=api, **options)

    def _set(self, kind: str, **described: Any) -> BrokerFault:
        times = {"times": described.pop("times")} if "times" in described else {}
        known = {name: value for name, value in described.items() if value is not None}
        return BrokerFault(self._do, {"kind": kind, **known, **times})

    def full_disk(self, *, topic: str | None = None) -> BrokenDisk:
        """Makes writes fail as on a full volume: those of one topic, or all."""
        return self._disk(kind="full", topic=topic)

    def slow_disk(
        self, *, ms: int, operations: Sequence[str] = ("write", "sync"), topic: str | None = None
    ) -> BrokenDisk:
        """Makes each operation (read, write, sync) take `ms` milliseconds longer."""
        return self._disk(kind="slow", milliseconds=ms, operations=list(operations), topic=topic)

    def failing_disk(
        self, *, operations: Sequence[str] = ("write", "sync"), topic: str | None = None
    ) -> BrokenDisk:
        """Makes operations fail with EIO, as on a broken device."""
        return self._disk(kind="failing", operations=list(operations), topic=topic)

    def _disk(self, **described: Any) -> BrokenDisk:
        return BrokenDisk(self._do, {name: value for name, value in described.items() if value is not None})

    def clear(self) -> None:
        """Removes all faults of the broker, and heals its disk and its links."""
        self._do({"do": "clear_all"})


def _wait(condition: Callable[[], bool], timeout: float, describe: Callable[[], str]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("this would block the loop: await await_fired or await_held instead")
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout:g} s {describe()}")
        time.sleep(_POLL_SECONDS)


async def _await(condition: Callable[[], bool], timeout: float, describe: Callable[[], str]) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout:g} s {describe()}")
        await asyncio.sleep(_POLL_SECONDS)
