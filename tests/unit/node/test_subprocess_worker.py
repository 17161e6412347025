"""Work in another process: its values come one by one, its errors as they are, and its death is no hang."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from strandline.node.workers import ThreadWorkers
from strandline.ports.workers import Walk, WorkLost


def counted(count: int) -> Iterator[tuple[int, int]]:
    for number in range(count):
        yield number, os.getpid()


def failing(message: str) -> Iterator[int]:
    yield 1
    raise FileNotFoundError(2, message, "some/path")


def dying() -> Iterator[int]:
    yield 1
    os.kill(os.getpid(), signal.SIGKILL)
    yield 2


async def values_of(walk: Walk[object]) -> list[object]:
    found = []
    while (value := await walk.next()) is not None:
        found.append(value)
    return found


@pytest.fixture
def workers() -> Iterator[ThreadWorkers]:
    pool = ThreadWorkers(2)
    yield pool
    pool.close()


def test_values_come_from_another_process(workers: ThreadWorkers) -> None:
    async def work() -> list[object]:
        return await values_of(workers.walk(counted, 3, is_heavy=True))

    found = asyncio.run(work())
    assert [number for number, _ in found] == [0, 1, 2]  # type: ignore[misc]
    assert {pid for _, pid in found} != {os.getpid()}  # type: ignore[misc]
    assert len({pid for _, pid in found}) == 1  # type: ignore[misc]


def test_light_work_stays_here(workers: ThreadWorkers) -> None:
    async def work() -> list[object]:
        return await values_of(workers.walk(counted, 3))

    assert asyncio.run(work()) == [(number, os.getpid()) for number in range(3)]


@pytest.mark.parametrize("is_heavy", [False, True])
def test_an_error_of_the_work_is_raised_as_it_is(workers: ThreadWorkers, is_heavy: bool) -> None:
    async def work() -> None:
        walk = workers.walk(failing, "gone", is_heavy=is_heavy)
        assert await walk.next() == 1
        with pytest.raises(FileNotFoundError, match="gone") as raised:
            await walk.next()
        assert raised.value.filename == "some/path"

    asyncio.run(work())


def test_a_process_that_dies_is_work_lost(workers: ThreadWorkers) -> None:
    async def work() -> None:
        walk = workers.walk(dying, is_heavy=True)
        assert await walk.next() == 1
        with pytest.raises(WorkLost):
            await walk.next()

    asyncio.run(work())


def test_a_closed_walk_ends_its_process(workers: ThreadWorkers) -> None:
    async def work() -> int:
        walk = workers.walk(counted, 1000, is_heavy=True)
        first = await walk.next()
        assert first is not None
        walk.close()
        assert await walk.next() is None
        return first[1]

    pid = asyncio.run(work())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_that_cannot_be_started_is_work_lost(
    workers: ThreadWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no failure of a disk, for which the same kind of error would be taken."""
    monkeypatch.setattr(sys, "executable", "/there/is/none")

    async def work() -> None:
        with pytest.raises(WorkLost, match="could not be started"):
            await workers.walk(counted, 3, is_heavy=True).next()

    asyncio.run(work())


def test_a_process_that_dies_before_it_has_all_of_its_work_is_work_lost(
    workers: ThreadWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    async def work() -> None:
        with pytest.raises(WorkLost):
            await workers.walk(counted, bytes(1_000_000), is_heavy=True).next()

    asyncio.run(work())
