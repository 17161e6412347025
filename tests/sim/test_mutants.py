"""Each of these takes one rule of durability away. A scenario that does not notice would notice nothing else either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from strandline.base.planned import Planned
from strandline.broker.metadata import controller_runtime
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.replicas import Replicas
from strandline.controller.brokers import Registration
from strandline.controller.image import ClusterImage
from strandline.partition.producers import Producers
from strandline.storage import indexes, log_loader
from strandline.storage.flushing import FlushWork
from strandline.storage.log import Log
from strandline.storage.segment import Segment
from tests.sim import scenarios

SEEDS_MAX = 40
# Where to begin looking, for the mutants that few seeds notice.
FIRST_SEEDS = {
    "flush_counts_before_it_is_done": 250,
    "failed_sync_is_ignored": 10,
    "stop_is_clean_whatever_was_not_repaired": 28,
}
Patch = pytest.MonkeyPatch


def flush_syncs_nothing(patch: Patch) -> None:
    patch.setattr(FlushWork, "run", lambda self, disk: None)


def flush_syncs_no_directory(patch: Patch) -> None:
    original = FlushWork.run
    patch.setattr(FlushWork, "run", lambda self, disk: original(self._replace(directories=()), disk))


def flush_counts_before_it_is_done(patch: Patch) -> None:
    original = Log.flush_work

    def flush_work(self: Log) -> FlushWork:
        work = original(self)
        self.flushed(work.end_offset)
        return work

    patch.setattr(Log, "flush_work", flush_work)


def failed_sync_is_ignored(patch: Patch) -> None:
    async def flush(self: LogFlusher, replica: Any) -> None:
        work = replica.log.flush_work()
        with suppress(OSError):
            await self._node.workers.run(work.run, self._node.disk)
        replica.log.flushed(work.end_offset)

    patch.setattr(LogFlusher, "flush", flush)


def recovery_checks_no_crc(patch: Patch) -> None:
    class Whatever(int):
        def __ne__(self, other: object) -> bool:
            return False

    patch.setattr(log_loader, "checksum", lambda batch: Whatever())


def producers_are_forgotten_at_restart(patch: Patch) -> None:
    patch.setattr(Producers, "load", lambda self, entries: None)
    patch.setattr(Producers, "replay", lambda self, header, batch: None)


def repeated_batches_are_appended(patch: Patch) -> None:
    patch.setattr(Producers, "check", lambda self, header, guard=None: None)


def leader_epoch_stays_after_an_unclean_end(patch: Patch) -> None:
    original = controller_runtime.plan_register

    def plan_register(
        image: ClusterImage, registration: Registration, *more: Any, **keywords: Any
    ) -> Planned[int]:
        return original(image, replace(registration, was_clean_shutdown=True), *more, **keywords)

    patch.setattr(controller_runtime, "plan_register", plan_register)


def metadata_is_acknowledged_before_its_sync(patch: Patch) -> None:
    async def sync(self: RaftNode, work: Callable[..., None], *values: object) -> None:
        await asyncio.sleep(0)

    patch.setattr(RaftNode, "_sync", sync)


def stop_is_clean_whatever_was_not_repaired(patch: Patch) -> None:
    patch.setattr(Replicas, "is_repaired", lambda self, directory: True)


def preallocated_room_stays_behind_a_roll(patch: Patch) -> None:
    def retire(self: Segment) -> None:
        self.offset_index.close()
        self.time_index.close()

    patch.setattr(Segment, "retire", retire)


def batch_without_index_stays(patch: Patch) -> None:
    def append(
        self: Segment, parts: Any, size: int, last_offset: int, max_timestamp: int, interval: int
    ) -> None:
        position = self.size
        self.file().write_at(position, parts)
        self.size = position + size
        self.note_batch(position, size, last_offset, max_timestamp, interval)

    patch.setattr(Segment, "append", append)
    patch.setattr(indexes, "_UNSAVED_BYTES_MAX", 1)  # every entry is written at once, so that some do not fit


def roll_closes_the_old_segment_first(patch: Patch) -> None:
    def roll(self: Log, now_ms: int) -> Segment:
        if self.active.size == 0 and self.active.base_offset == self.log_end_offset:
            return self.active
        self.active.finish()
        self.write_producer_snapshot()
        return self._add_segment(self.log_end_offset, now_ms)

    patch.setattr(Log, "roll", roll)


MUTANTS: dict[Callable[[Patch], None], Callable[..., Any]] = {
    flush_syncs_nothing: scenarios.power_cuts_with_flushes,
    flush_syncs_no_directory: scenarios.power_cuts_with_flushes,
    flush_counts_before_it_is_done: scenarios.power_cuts_with_flushes,
    failed_sync_is_ignored: scenarios.failed_sync_under_load,
    recovery_checks_no_crc: scenarios.power_cuts_without_flushes,
    producers_are_forgotten_at_restart: scenarios.kills_under_load,
    repeated_batches_are_appended: scenarios.kills_under_load,
    leader_epoch_stays_after_an_unclean_end: scenarios.power_cuts_without_flushes,
    metadata_is_acknowledged_before_its_sync: scenarios.power_cuts_while_topics_are_created,
    stop_is_clean_whatever_was_not_repaired: scenarios.clean_stop_after_an_unclean_end,
    preallocated_room_stays_behind_a_roll: scenarios.kills_under_load,
    batch_without_index_stays: scenarios.full_disk_under_load,
    roll_closes_the_old_segment_first: scenarios.full_disk_under_load,
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_scenario_notices_that_a_rule_is_missing(
    mutant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    first = FIRST_SEEDS.get(mutant.__name__, 0)
    for seed in range(first, first + SEEDS_MAX):
        try:
            scenarios.run(MUTANTS[mutant], seed)
        except AssertionError as error:
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:200]}")
            return
    pytest.fail(f"no seed of {SEEDS_MAX} noticed")
