"""One flow in one process: sessions, each with its own clients, one after another until the flow is stopped.

A session starts with nothing but the settings: the target's group has the progress, the journal says where records
went. So every failure that a client does not get over has one remedy: a new session, after a pause.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Final

from strandline.client.errors import ConfigError, FencedInstanceError, KafkaError, WrongClusterError
from strandline.client.log_limits import RareLines
from strandline.client.net.backoff import Backoff
from strandline.client.world import ClientWorld
from strandline.mirror.config.settings import FlowSettings, MirrorConfigError
from strandline.mirror.metrics import FlowMetrics
from strandline.mirror.reports import Reports
from strandline.mirror.session import FlowSession

_PAUSE_MS: Final = 200
_PAUSE_MS_MAX: Final = 10_000
_LONG_ENOUGH_SECONDS: Final = 30.0

logger = logging.getLogger("strandline.mirror")


class FlowStopped(Exception):
    """The flow cannot go on, and no retry helps; the text says what to do."""


class Flow:
    """Copies one flow until it is stopped."""

    def __init__(
        self,
        settings: FlowSettings,
        instance: str,
        world: ClientWorld,
        *,
        bytes_per_second: int | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = FlowMetrics(settings.source.alias, settings.target.alias, world.clock.monotonic)
        self.session: FlowSession | None = None  # the present one
        self._instance = instance
        self._world = world
        self._bytes_per_second = (
            settings.number("strandline.bytes.per.second") if bytes_per_second is None else bytes_per_second
        )
        self._reports = Reports(settings.name, world.clock.wall_ms)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends the flow after the transaction that is under way."""
        self._stopping.set()

    async def run(self) -> None:
        """Copies until `stop`. Raises FlowStopped if there is no use in trying again."""
        clock = self._world.clock
        pause = Backoff(_PAUSE_MS, _PAUSE_MS_MAX, self._world.random.below)
        lines = RareLines(clock.monotonic)
        while not self._stopping.is_set():
            began_at = clock.monotonic()
            try:
                await self._run_session()
            except (ConfigError, MirrorConfigError) as error:
                raise FlowStopped(f"{self.settings.name}: {error}") from error
            except WrongClusterError as error:
                raise FlowStopped(f"{self.settings.name}: {error}") from error
            except FencedInstanceError as error:
                raise FlowStopped(
                    f"{self.settings.name}: another process runs as instance {self._instance}; give each its own "
                    "--instance"
                ) from error
            except KafkaError as error:
                self.metrics.last_failure = str(error)
                if lines.is_due(str(error)):
                    logger.warning("%s: %s; trying again", self.settings.name, error)
            if clock.monotonic() - began_at > _LONG_ENOUGH_SECONDS:
                pause.succeeded()
            await self._sleep(pause.failed())

    async def _run_session(self) -> None:
        async with AsyncExitStack() as stack:
            session = FlowSession(
                self.settings,
                self._instance,
                self._world,
                self._reports,
                self.metrics,
                self._bytes_per_second,
            )
            await session.start(stack)
            self.session = session
            try:
                await session.run(self._stopping)
            finally:
                self.session = None

    async def _sleep(self, seconds: float) -> None:
        """Sleeps, or returns at once when the flow is stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
