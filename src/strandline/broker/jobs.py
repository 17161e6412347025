"""The periodic jobs of a node, and their intervals."""

from __future__ import annotations

from typing import Final

from strandline.broker.broker_parts import BrokerParts
from strandline.broker.periodic_tasks import PeriodicTasks

_REMOVAL_MS: Final = 1000
_FLUSH_CHECK_MS: Final = 1000
_SNAPSHOT_CHECK_MS: Final = 1000
_LAG_CHECK_MS_MIN: Final = 100
_OVERDUE_CHECK_MS: Final = 1000
_CERTIFICATE_CHECK_MS: Final = 2000


def start_jobs_of_every_node(parts: BrokerParts) -> None:
    """Starts the jobs that a controller has too."""
    jobs = PeriodicTasks(parts.node)

    async def end_overdue_requests() -> None:
        parts.request_memory.end_overdue(parts.node.clock.monotonic())

    jobs.start(lambda: _SNAPSHOT_CHECK_MS, parts.controller_jobs.snapshot_metadata)
    seconds = parts.config.int("leader.imbalance.check.interval.seconds")
    jobs.start(lambda: seconds * 1000, parts.controller_jobs.return_leaders)
    jobs.start_by_key("unclean.leader.election.interval.ms", parts.controller_jobs.elect_uncleanly)
    jobs.start_by_key(
        "delegation.token.expiry.check.interval.ms", parts.controller_jobs.remove_expired_tokens
    )
    jobs.start(parts.connections.idle_check_ms, parts.connections.close_idle)
    jobs.start(lambda: _OVERDUE_CHECK_MS, end_overdue_requests)
    if any(listener.protocol != "PLAINTEXT" for listener in parts.config.listeners):
        jobs.start(lambda: _CERTIFICATE_CHECK_MS, parts.reload_certificates)


def start_jobs_of_brokers(parts: BrokerParts) -> None:
    """Starts the jobs of a node that has logs."""
    jobs = PeriodicTasks(parts.node)

    def lag_check_ms() -> int:
        return max(parts.node.int_config("replica.lag.time.max.ms") // 2, _LAG_CHECK_MS_MIN)

    # A node that is restarted often would otherwise never run these.
    soon_ms = parts.config.int("log.initial.task.delay.ms")
    for key, job in (
        ("log.retention.check.interval.ms", parts.retention.apply),
        ("log.flush.offset.checkpoint.interval.ms", parts.maintenance.checkpoint_recovery_points),
        ("log.flush.start.offset.checkpoint.interval.ms", parts.maintenance.checkpoint_log_starts),
    ):
        jobs.start_by_key(key, job, first_ms_max=soon_ms)
    for key, job in (
        ("replica.high.watermark.checkpoint.interval.ms", parts.maintenance.checkpoint_high_watermarks),
        ("producer.id.expiration.check.interval.ms", parts.maintenance.expire_producers),
        ("offsets.retention.check.interval.ms", parts.groups.expire_offsets),
        (
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
            parts.transactions.abort_timed_out,
        ),
        (
            "transaction.remove.expired.transaction.cleanup.interval.ms",
            parts.transactions.forget_expired,
        ),
    ):
        jobs.start_by_key(key, job)
    jobs.start(lambda: _FLUSH_CHECK_MS, parts.maintenance.flush_by_time)
    jobs.start(lag_check_ms, parts.isr.check_lag)
    jobs.start(lambda: _REMOVAL_MS, parts.removal.remove_due)
