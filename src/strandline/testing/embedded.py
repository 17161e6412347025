"""A broker on the loop of the test itself."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from strandline.base.waiting import all_ended
from strandline.node import launcher
from strandline.node.config_providers import broker_config
from strandline.testing.fault_channels import LoopControl
from strandline.testing.faults import BrokerFaults
from strandline.testing.reachable import AsyncCalls


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedBroker(AsyncCalls):
    """A broker on a loop of this process; its calls are coroutines."""

    bootstrap: str
    data_dir: Path
    faults: BrokerFaults
    metrics_url: str = ""  # the URL of its metrics, if it serves them

    @property
    def client_settings(self) -> dict[str, str]:
        """The settings of a client, by Kafka's names."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def librdkafka_settings(self) -> dict[str, str]:
        """The settings for confluent-kafka and kcat."""
        return self.client_settings

    @property
    def python_settings(self) -> dict[str, str]:
        """The settings for aiokafka and kafka-python, as keyword arguments."""
        return {"bootstrap_servers": self.bootstrap}


class BrokerHalted(Exception):
    """The broker halted because its state could not be trusted; the text says why. A server would end its process."""


@asynccontextmanager
async def broker(
    *, data_dir: Path | None = None, metrics: bool = False, **settings: str | int | bool
) -> AsyncIterator[EmbeddedBroker]:
    """Runs a broker on a free port of the loopback interface; settings have Kafka's names, with `_` for `.`.

    With `metrics` it serves metrics over HTTP, at `metrics_url`. Without `data_dir` its data is deleted at the end. If
    the broker halts, the body of the `with` block is cancelled and BrokerHalted is raised.
    """
    where = data_dir or Path(tempfile.mkdtemp(prefix="strandline-test-"))
    process = _ProcessOfTheTest()
    try:
        given = launcher.embedded_settings(
            port=0, data=str(where), host="127.0.0.1", given=named_settings(settings, metrics)
        )
        config = broker_config(given)
        events = launcher.stderr_events(node=config.node_id, level="warn")
        node = process.node = launcher.RunningNode(config, events, process, has_faults=True)
        await node.start()
        control = LoopControl(node.fault_control(), asyncio.get_running_loop())
        try:
            yield EmbeddedBroker(
                bootstrap=node.bootstrap,
                data_dir=where,
                faults=BrokerFaults(control.do),
                metrics_url=node.metrics_url,
            )
        finally:
            control.end()
            if process.halted_because is None:
                await node.stop()
    finally:
        if process.halted_because is not None:
            await process.end()
        if data_dir is None:
            shutil.rmtree(where, ignore_errors=True)
        if process.halted_because is not None:
            raise BrokerHalted(process.halted_because)


class _ProcessOfTheTest:
    """Stands for the process of an embedded broker, which must not end the real one: that is the test run."""

    node: launcher.RunningNode

    def __init__(self) -> None:
        self.halted_because: str | None = None
        self._loop = asyncio.get_running_loop()
        self._body = asyncio.current_task()
        self._is_cancelled = False
        self._abandoning: asyncio.Task[None] | None = None

    def halt(self, reason: str) -> NoReturn:
        if self.halted_because is None:
            self.halted_because = reason
            self._loop.call_soon_threadsafe(self._halted)
        raise BrokerHalted(reason)

    def _halted(self) -> None:
        if self._abandoning is None and self._body is not None:
            # The node is abandoned too, because the body of a fixture runs in another task and is not cancelled.
            self._abandoning = self._loop.create_task(self.node.abandon())
            self._is_cancelled = self._body.cancel()

    async def end(self) -> None:
        """Ends the node after a halt, once the body of the `with` block has ended."""
        if self._abandoning is None:
            self._abandoning = self._loop.create_task(self.node.abandon())
        await all_ended(self._abandoning)
        if self._is_cancelled and self._body is not None:
            self._body.uncancel()


def named_settings(settings: Mapping[str, str | int | bool], metrics: bool) -> dict[str, str]:
    """Returns settings by Kafka's names, with a free port for metrics if `metrics` is true."""
    return {**({launcher.METRICS_PORT: "0"} if metrics else {}), **by_kafka_names(settings)}


def by_kafka_names(settings: Mapping[str, str | int | bool]) -> dict[str, str]:
    """Returns settings by Kafka's names: `num_partitions=3` becomes `num.partitions=3`."""
    return {
        name.replace("_", "."): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }
