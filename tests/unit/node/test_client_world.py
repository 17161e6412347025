"""The real world of a client, at its end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from strandline.node.client_world import client_world


def test_work_that_is_under_way_does_not_hold_up_the_loop_on_which_a_client_is_closed() -> None:
    may_end, has_ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(30)
        has_ended.set()

    async def main() -> None:
        world = client_world()
        working = asyncio.ensure_future(world.workers.run(work))
        await asyncio.sleep(0)
        world.close()
        assert not has_ended.is_set()
        with pytest.raises(RuntimeError, match="shutdown"):
            world.workers.run(work)
        may_end.set()
        await working

    asyncio.run(main())
