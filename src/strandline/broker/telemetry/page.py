"""The page of a node's metrics: its collectors, in the order of their precedence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from strandline.ports.clock import Clock
from strandline.telemetry.exposition import Families, Family, render

# While a page is made, other work of the node waits for about this long, and for one step of it, which takes a
# millisecond or two. `bench.scrape` measures it.
SLICE_S: Final = 0.003

Collector = Callable[[], Families]


class MetricsPage:
    """Makes the page. Scrapes that come while a page is being made get the same page."""

    def __init__(self, clock: Clock, series_max: int) -> None:
        self._clock = clock
        self._series_max = series_max
        self._collectors: list[Collector] = []
        self._under_way: dict[bool, asyncio.Task[bytes]] = {}

    def add(self, *collectors: Collector) -> None:
        self._collectors += collectors

    async def text(self, *, is_open_metrics: bool = False) -> bytes:
        task = self._under_way.get(is_open_metrics)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._make(is_open_metrics))
            self._under_way[is_open_metrics] = task
            task.add_done_callback(lambda _: self._under_way.pop(is_open_metrics))
        return await asyncio.shield(task)  # another scrape may wait for it when this client is gone

    async def _make(self, is_open_metrics: bool) -> bytes:
        pieces: list[bytes] = []
        families = self._families()
        since = self._clock.monotonic()
        for piece in render(families, is_open_metrics=is_open_metrics, series_max=self._series_max):
            if piece:
                pieces.append(piece.encode())
            if self._clock.monotonic() - since > SLICE_S:
                await asyncio.sleep(0)
                since = self._clock.monotonic()
        return b"".join(pieces)

    def _families(self) -> Iterator[Family | None]:
        """Yields all families by rank. A family of two collectors comes once, with the samples of both."""
        merged: dict[str, Family] = {}
        for collect in self._collectors:
            for family in collect():
                yield None  # each collector has taken some time
                if family is None:
                    continue
                if family.name in merged:
                    known = merged[family.name]
                    merged[family.name] = known._replace(samples=[*known.samples, *family.samples])
                else:
                    merged[family.name] = family
        ordered = sorted(merged.values(), key=lambda family: family.rank)
        merged.clear()
        # Each family is freed when it is written: freeing all samples of a large page at once takes tens of
        # milliseconds.
        ordered.reverse()
        while ordered:
            yield ordered.pop()
            yield None
