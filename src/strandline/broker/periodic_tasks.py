"""What a node does by itself: retention, flushing, checkpoints, removal of deleted files, idle connections.

Each job is a loop with its own interval. A job looks at open replicas only, since a partition that nobody touched since
the start has nothing to flush; retention opens the others on its own turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.replication.replica import Replica
from strandline.controller.controller import Controller
from strandline.controller.image_records import records_of
from strandline.controller.plans import Planned
from strandline.ports.disk import passes
from strandline.storage import retention
from strandline.storage.directory import LogDirectory

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

_NEVER_MS: Final = 0x7FFFFFFFFFFFFFFF
# How often deleted files are looked for, and how often idle connections.
_REMOVAL_SECONDS: Final = 1.0
_IDLE_CHECKS_PER_LIMIT: Final = 4


class Background:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._doomed_files: list[tuple[int, str]] = []
        self._snapshot_at = broker.clock.monotonic()

    def start_on_every_node(self) -> None:
        """Also where there is only a controller."""
        start = self._broker.tasks.start
        start(self._every(lambda: 1000, self.snapshot_metadata))
        seconds = self._broker.config.int("leader.imbalance.check.interval.seconds")
        start(self._every(lambda: seconds * 1000, self.return_leaders))
        start(self._every(self._ms("unclean.leader.election.interval.ms"), self.elect_uncleanly))
        start(self._every(self._idle_check_ms, self.close_idle))

    def start(self) -> None:
        start = self._broker.tasks.start
        for key, job in (
            ("log.retention.check.interval.ms", self.apply_retention),
            ("log.flush.offset.checkpoint.interval.ms", self.checkpoint_recovery_points),
            ("log.flush.start.offset.checkpoint.interval.ms", self.checkpoint_log_starts),
        ):
            # A node that is started often would otherwise never come to them.
            start(self._every(self._ms(key), job, self._broker.config.int("log.initial.task.delay.ms")))
        start(
            self._every(
                self._ms("replica.high.watermark.checkpoint.interval.ms"), self.checkpoint_high_watermarks
            )
        )
        start(self._every(self._ms("producer.id.expiration.check.interval.ms"), self.expire_producers))
        start(self._every(self._ms("offsets.retention.check.interval.ms"), self.expire_offsets))
        transactions = self._broker.transactions
        start(
            self._every(
                self._ms("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
                transactions.abort_timed_out,
            )
        )
        start(
            self._every(
                self._ms("transaction.remove.expired.transaction.cleanup.interval.ms"),
                transactions.forget_expired,
            )
        )
        start(self._every(lambda: 1000, self.flush_by_time))
        start(self._every(self._lag_check_ms, self.check_lag))
        start(self._every(lambda: int(_REMOVAL_SECONDS * 1000), self.remove_deleted))

    def _ms(self, key: str) -> Callable[[], int]:
        """Read anew for each round: some of these keys change while the broker runs."""
        return lambda: int(self._broker.configs.broker_value(key))  # type: ignore[arg-type]

    def _idle_check_ms(self) -> int:
        limit = self._ms("connections.max.idle.ms")()
        return _NEVER_MS if limit <= 0 else max(limit // _IDLE_CHECKS_PER_LIMIT, 10)

    def _lag_check_ms(self) -> int:
        return max(self._ms("replica.lag.time.max.ms")() // 2, 100)

    async def check_lag(self) -> None:
        self._broker.in_sync.check_lag()

    async def return_leaders(self) -> None:
        """Leadership goes back to preferred replicas (auto.leader.rebalance.enable)."""
        broker = self._broker
        if broker.config.flag("auto.leader.rebalance.enable"):
            percentage = broker.config.int("leader.imbalance.per.broker.percentage")
            moved = await self._elect(lambda machine: machine.plan_preferred_leaders(percentage))
            if moved:
                broker.events.info("preferred leaders elected", partitions=moved)

    async def elect_uncleanly(self) -> None:
        """Where nobody in sync is left and the topic has come to allow any leader (unclean.leader.election.enable)."""
        elected = await self._elect(Controller.plan_unclean_leaders)
        if elected:
            self._broker.events.warn("leaders elected that may lack records", partitions=elected)

    async def _elect(self, plan: Callable[[Controller], Planned[int]]) -> int:
        """How many partitions got another leader; none where another node decides."""
        runtime = self._broker.controller_runtime
        if runtime is None or not runtime.is_active:
            return 0
        try:
            return await runtime.commit(lambda: plan(runtime.machine))
        except KafkaError:
            return 0

    async def snapshot_metadata(self) -> None:
        """When the metadata log has grown enough since the last snapshot, or something is new and that one is old."""
        quorum, config = self._broker.quorum, self._broker.config
        size, now = quorum.store.bytes_since_snapshot, self._broker.clock.monotonic()
        interval_s = config.int("metadata.log.max.snapshot.interval.ms") / 1000
        is_old = interval_s > 0 and now - self._snapshot_at >= interval_s
        if size >= config.int("metadata.log.max.record.bytes.between.snapshots") or (size and is_old):
            self._snapshot_at = now
            await quorum.make_snapshot(records_of(self._broker.image), quorum.applied_offset)

    async def _every(
        self,
        interval_ms: Callable[[], int],
        job: Callable[[], Awaitable[None]],
        first_ms_max: int = _NEVER_MS,
    ) -> None:
        pause_ms = min(interval_ms(), first_ms_max)
        while True:
            # A day at a time: what an operating system's timer takes is bounded.
            await asyncio.sleep(min(pause_ms, 86_400_000) / 1000)
            pause_ms = interval_ms()
            try:
                await job()
            except OSError as error:
                self._broker.events.error("a background job failed", job=job.__name__, error=error)

    # Retention

    async def apply_retention(self) -> None:
        broker = self._broker
        for topic, state in sorted(broker.image.topics.items()):
            for index in sorted(state.partitions):
                if not broker.replicas.has_data(topic, index):
                    continue
                if TopicPartition(topic, index) in broker.cleaner.under_way:
                    continue  # its segments are being read; the next check finds it done
                try:
                    replica = await broker.replicas.open(topic, index)
                    self._apply_retention_to(replica)
                except KafkaError:
                    continue
                except OSError as error:
                    broker.replicas.disk_error(replica.directory, error)
                await asyncio.sleep(0)

    def _apply_retention_to(self, replica: Replica) -> None:
        log, config = replica.log, replica.config
        now = self._broker.clock.wall_ms()
        count = retention.below_start(log.segments, log.log_start_offset)
        if "delete" in config.cleanup_policy:
            # Segments above the high watermark stay: they are not committed.
            count = max(
                count,
                retention.expired_by_time(log.segments_below(replica.high_watermark), config, now),
                retention.expired_by_size(log.segments_below(replica.high_watermark), config, log.size),
            )
        if count == 0:
            return
        if count == len(log.segments):
            try:
                log.roll(now)
            except OSError as error:
                if not passes(error) or count == 1:
                    raise
                count -= 1  # what can go makes the room that is needed
            if count == len(log.segments):
                return  # empty: there is nothing to roll
        dropped = log.segments[:count]
        paths = log.drop_segments(dropped)
        replica.directory.log_starts[replica.partition] = log.log_start_offset
        self.remove_later(paths, config.file_delete_delay_ms)
        self._broker.events.info(
            "segments deleted", partition=replica.partition, count=count, log_start=log.log_start_offset
        )

    def remove_later(self, paths: list[str], delay_ms: int) -> None:
        now = self._broker.clock.wall_ms()
        self._doomed_files += [(now + delay_ms, path) for path in paths]

    async def remove_deleted(self) -> None:
        broker = self._broker
        now = broker.clock.wall_ms()
        due = [path for when, path in self._doomed_files if when <= now]
        self._doomed_files = [(when, path) for when, path in self._doomed_files if when > now]
        for path in due:
            broker.files.forget(
                path
            )  # an answer may have been sent from it, and an open file takes up its room
            await self._remove(broker.disk.remove, path)
        directories = broker.replicas.doomed_directories
        due = [path for when, path in directories if when <= now]
        broker.replicas.doomed_directories = [(when, path) for when, path in directories if when > now]
        for path in due:
            broker.files.forget_in(path)
            if broker.disk.exists(path):
                await self._remove(broker.disk.remove_directory, path)

    async def _remove(self, remove: Callable[[str], None], path: str) -> None:
        """One that cannot be removed keeps no other; the next start tries again."""
        try:
            await self._broker.workers.run(remove, path)
        except OSError as error:
            self._broker.events.warn("not removed", path=path, error=error)

    # Flushing and checkpoints

    async def flush_by_time(self) -> None:
        """flush.ms, counted from the last flush of each log that has something to flush."""
        now = self._broker.clock.wall_ms()
        for replica in self._broker.replicas.all_open():
            due = (
                replica.config.flush_ms != _NEVER_MS
                and now - replica.last_flush_ms >= replica.config.flush_ms
            )
            rolled = (
                len(replica.log.segments) > 1 and replica.log.recovery_point < replica.log.active.base_offset
            )
            if (due and replica.log.recovery_point < replica.log.log_end_offset) or rolled:
                try:
                    await self._broker.flush(replica)
                except KafkaError:
                    continue

    async def checkpoint_recovery_points(self) -> None:
        for replica in self._broker.replicas.all_open():
            replica.directory.recovery_points[replica.partition] = replica.log.recovery_point
        for directory in self._broker.replicas.directories:
            await self._write(directory, directory.render_recovery_points)

    async def checkpoint_high_watermarks(self) -> None:
        for replica in self._broker.replicas.all_open():
            replica.directory.high_watermarks[replica.partition] = replica.high_watermark
        for directory in self._broker.replicas.directories:
            await self._write(directory, directory.render_high_watermarks)

    async def checkpoint_log_starts(self) -> None:
        for replica in self._broker.replicas.all_open():
            replica.directory.log_starts[replica.partition] = replica.log.log_start_offset
        for directory in self._broker.replicas.directories:
            await self._write(directory, directory.render_log_starts)

    async def _write(self, directory: LogDirectory, render: Callable[[], tuple[str, bytes]]) -> None:
        if directory.offline_because is None:
            try:
                await self._broker.checkpoints.write(render)
            except OSError as error:
                self._broker.replicas.disk_error(directory, error)

    # The rest

    async def expire_producers(self) -> None:
        age_ms = self._ms("producer.id.expiration.ms")()
        oldest = self._broker.clock.wall_ms() - age_ms
        for replica in self._broker.replicas.all_open():
            replica.producers.expire(oldest)

    async def expire_offsets(self) -> None:
        self._broker.groups.expire_offsets()

    async def close_idle(self) -> None:
        limit_ms = self._ms("connections.max.idle.ms")()
        if limit_ms > 0:
            for connection in self._broker.connections.idle_since(
                self._broker.clock.monotonic() - limit_ms / 1000
            ):
                connection.end_idle()
