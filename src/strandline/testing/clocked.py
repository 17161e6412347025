"""An embedded broker with a clock that the test moves: hours of retention, sessions, transactions in milliseconds.

    with clocked_broker(log_retention_ms=3_600_000) as b:      # or `async with`
        ... b.bootstrap ...
        b.advance(3_700)                                       # seconds

It runs on a loop of its own in a thread of the test's process, so any client can use it. Only the broker's time is
moved; the time of clients is not.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from strandline.node import launcher
from strandline.node.config_providers import broker_config
from strandline.node.faults.clock import ClockedLoop, MovableClock
from strandline.testing.embedded import BrokerHalted, by_kafka_names
from strandline.testing.fault_channels import LoopControl
from strandline.testing.faults import BrokerFaults
from strandline.testing.reachable import BlockingCalls

_SECONDS_MAX: Final = 60.0
# A jump of the time must end neither the broker's own session with its controller nor connections of clients, whose
# time does not jump.
_UNMOVED: Final = {
    "broker.session.timeout.ms": "2147483647",
    "connections.max.idle.ms": "9223372036854775807",
}
# After so many iterations of the loop, timers that are due have run, with the callbacks that they schedule.
_ROUNDS: Final = 10


class ClockedBroker(BlockingCalls):
    """A broker whose time the test moves. `with` and `async with` start and stop it."""

    def __init__(self, data_dir: Path | None, settings: dict[str, str]) -> None:
        self.data_dir = data_dir or Path(tempfile.mkdtemp(prefix="strandline-test-"))
        self._is_temporary = data_dir is None
        self.clock = MovableClock()
        self.bootstrap = ""
        self._halted_because = ""
        self._settings = launcher.embedded_settings(
            port=0, data=str(self.data_dir), host="127.0.0.1", given={**_UNMOVED, **settings}
        )
        self._loop: ClockedLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: launcher.RunningNode | None = None
        self._control: LoopControl | None = None

    @property
    def client_settings(self) -> dict[str, str]:
        """The settings of a client, by Kafka's names."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def librdkafka_settings(self) -> dict[str, str]:
        """The same for confluent-kafka and kcat."""
        return self.client_settings

    @property
    def faults(self) -> BrokerFaults:
        assert self._control is not None, "the broker is not running"
        return BrokerFaults(self._control.do)

    def advance(self, seconds: float) -> None:
        """Moves the broker's time ahead. Timers that are due run before this returns; tasks that they start may go
        on."""
        self.clock.advance(seconds)
        self._call(_let_timers_run)

    # Starting and stopping

    def start(self) -> None:
        self._loop = ClockedLoop(self.clock)
        self._thread = threading.Thread(target=self._run, name="strandline-clocked", daemon=True)
        self._thread.start()
        try:
            self._call(self._start)
        except BaseException:
            self._end_loop()
            raise

    def stop(self) -> None:
        """Ends the broker. Raises BrokerHalted if the broker had halted because its state could not be trusted."""
        try:
            self._call(self._stop)
        finally:
            self._end_loop()
            if self._is_temporary:
                shutil.rmtree(self.data_dir, ignore_errors=True)
        if self._halted_because:
            raise BrokerHalted(self._halted_because)

    def halt(self, reason: str) -> NoReturn:
        """Notes that the broker halts. The broker calls this where a server would end its process."""
        self._halted_because = self._halted_because or reason
        raise BrokerHalted(reason)

    def _run(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        assert self._loop is not None, "the broker is not running"
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(_SECONDS_MAX)

    async def _start(self) -> None:
        config = broker_config(self._settings)
        events = launcher.stderr_events(node=config.node_id, level="warn")
        node = launcher.RunningNode(config, events, self, has_faults=True, clock=self.clock)
        await node.start()
        self._node = node
        self._control = LoopControl(node.fault_control(), asyncio.get_running_loop())
        self.bootstrap = node.bootstrap

    async def _stop(self) -> None:
        if self._control is not None:
            self._control.end()
        if self._node is not None:
            await (self._node.abandon() if self._halted_because else self._node.stop())

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_SECONDS_MAX)
            loop.close()

    # Blocks

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)


async def _let_timers_run() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


def clocked_broker(*, data_dir: Path | None = None, **settings: str | int | bool) -> ClockedBroker:
    """Returns a broker in a thread of this process, with a clock that the test moves by `advance`.

    Settings have Kafka's names, with `_` for `.`. Without `data_dir` its data is gone at the end.
    """
    return ClockedBroker(data_dir, by_kafka_names(settings))
