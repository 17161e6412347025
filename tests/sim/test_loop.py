"""The simulated loop: order, virtual time, worlds that are stuck, and what happens to the callbacks of the dead."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Coroutine
from typing import Any

import pytest

from strandline.sim.clock import EPOCH_MS, SimulatedClock
from strandline.sim.engine.loop import StuckWorld, simulated_loop
from strandline.sim.engine.process_life import NodeHalted, ProcessLife
from strandline.sim.engine.trace import Trace
from strandline.sim.workers import SimulatedWorkers
from strandline.sim.world import World


def test_callbacks_run_in_order_and_timers_by_deadline_then_sequence() -> None:
    loop = simulated_loop(Trace())
    ran: list[str] = []

    async def scenario() -> None:
        loop.call_later(2, ran.append, "second 2, first")
        loop.call_later(1, ran.append, "second 1")
        loop.call_later(2, ran.append, "second 2, second")
        loop.call_soon(ran.append, "soon, first")
        loop.call_soon(ran.append, "soon, second")
        loop.call_later(0.5, ran.append, "cancelled").cancel()
        await asyncio.sleep(3)

    loop.run_until_complete(scenario())
    assert ran == ["soon, first", "soon, second", "second 1", "second 2, first", "second 2, second"]
    assert loop.time() == 3.0


def test_timeouts_and_cancellation_work_in_virtual_time() -> None:
    loop = simulated_loop(Trace())

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(100), 10)
        assert loop.time() == 10
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await loop.create_future()
        assert loop.time() == 15
        sleeping = asyncio.create_task(asyncio.sleep(100))
        await asyncio.sleep(1)
        sleeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sleeping
        assert loop.time() == 16

    loop.run_until_complete(scenario())


def test_a_world_in_which_nothing_can_happen_is_stuck_and_says_who_waits() -> None:
    loop = simulated_loop(Trace())

    async def waits_for_ever() -> None:
        await loop.create_future()

    with pytest.raises(StuckWorld, match="waits_for_ever"):
        loop.run_until_complete(waits_for_ever())
    loop.close()


def test_a_world_that_takes_longer_than_it_may_is_stuck() -> None:
    loop = simulated_loop(Trace())

    async def ticks_for_ever() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(StuckWorld, match="ticks_for_ever"):
        loop.run_until_complete(ticks_for_ever(), seconds_max=100)
    loop.close()


def test_a_world_that_spins_without_time_passing_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.sim.engine.loop.CALLBACKS_AT_ONE_MOMENT_MAX", 1000)
    loop = simulated_loop(Trace())

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(StuckWorld, match="spins"):
        loop.run_until_complete(spins())
    loop.close()


def test_an_exception_that_nobody_handles_ends_the_run() -> None:
    loop = simulated_loop(Trace())

    async def scenario() -> None:
        loop.call_later(1, lambda: 1 / 0)
        await asyncio.sleep(10)

    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(scenario())
    assert loop.time() == 1
    loop.close()


def test_nothing_of_a_life_that_has_ended_runs_not_even_a_finally() -> None:
    loop = simulated_loop(Trace())
    ran: list[str] = []
    life = ProcessLife("one")

    async def work() -> None:
        loop.call_later(5, ran.append, "its timer")
        try:
            await asyncio.sleep(1)
            ran.append("before its end")
            await asyncio.sleep(5)
        finally:
            ran.append("finally")

    async def scenario() -> None:
        loop.call_later(3, life.end, "killed")
        with pytest.raises(NodeHalted):
            await life.run(work())
        assert loop.time() == 3
        await asyncio.sleep(10)

    loop.run_until_complete(scenario())
    assert ran == ["before its end"]
    loop.close()


def test_work_happens_before_it_is_reported_and_its_exceptions_are_passed_on() -> None:
    with World(1) as world:
        workers = SimulatedWorkers(world.loop, world.generator("workers"))
        done: list[float] = []

        async def scenario() -> None:
            running = asyncio.ensure_future(
                workers.run(lambda value: done.append(world.loop.time()) or value, 7)
            )
            assert not done, "not before the caller goes on"
            assert await running == 7
            assert done[0] < world.loop.time()
            with pytest.raises(ZeroDivisionError):
                await workers.run(lambda: 1 / 0)

        world.run(scenario())


def test_a_paused_life_holds_what_falls_due_and_goes_on_in_order() -> None:
    loop = simulated_loop(Trace())
    life = ProcessLife("paused")
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        for delay in (1.0, 2.0, 5.0):
            loop.call_later(delay, lambda d=delay: seen.append((f"{d}", loop.time())), context=life.context)  # type: ignore[misc]
        life.is_paused = True
        await asyncio.sleep(4.0)
        assert seen == []
        loop.resume(life)
        await asyncio.sleep(2.0)

    loop.run_until_complete(main())
    loop.close()
    assert seen == [("1.0", 4.0), ("2.0", 4.0), ("5.0", 5.0)]


def test_a_life_s_timers_run_at_the_rate_of_its_clock() -> None:
    loop = simulated_loop(Trace())
    life = ProcessLife("fast")
    life.clock_rate = 2.0
    seen: list[float] = []

    async def main() -> None:
        loop.call_later(3.0, lambda: seen.append(loop.time()), context=life.context)
        await asyncio.sleep(5.0)

    loop.run_until_complete(main())
    loop.close()
    assert seen == [1.5]


def test_a_clock_that_changes_its_rate_never_jumps() -> None:
    loop = simulated_loop(Trace())
    clock = SimulatedClock(loop)

    async def main() -> None:
        await asyncio.sleep(10.0)
        clock.set_rate(0.5)
        assert clock.monotonic() == 10.0
        await asyncio.sleep(10.0)
        clock.set_rate(2.0)
        await asyncio.sleep(10.0)
        assert clock.monotonic() == 35.0
        assert clock.wall_ms() == EPOCH_MS + 35_000

    loop.run_until_complete(main())
    loop.close()


def test_a_task_of_a_dead_life_that_never_began_leaves_nothing_unawaited_behind(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def wait_for(work: Coroutine[Any, Any, None]) -> None:
        await work

    async def scenario(world: World) -> None:
        life = ProcessLife("killed before it did anything")
        world.loop.create_task(wait_for(asyncio.sleep(1)), context=life.context)
        life.end("killed")

    with World(1) as world:
        world.run(scenario(world))
    gc.collect()
    assert not [str(each.message) for each in recwarn]
