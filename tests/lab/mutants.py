"""For each scenario a rule that is switched off, or settings that are others, so that it ends otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from strandline.lab.scenario import LabScenario
from tests.lab import field_rules, rules
from tests.lab.rules import Rule


@dataclass(frozen=True, slots=True)
class Other:
    """Other settings: `producer={"acks": "all"}` is laid over those of the scenario; other fields are replaced."""

    fields: Mapping[str, Any]

    def of(self, scenario: LabScenario) -> LabScenario:
        changes = {
            name: {**getattr(scenario, name), **value} if isinstance(value, dict) else value
            for name, value in self.fields.items()
        }
        return replace(scenario, **changes)


def other(**fields: Any) -> Other:
    return Other(fields)


ONE_COPY_OF_OFFSETS: Final = other(cluster={"offsets.topic.replication.factor": "1"})
THREE_COPIES_OF_OFFSETS: Final = other(cluster={"offsets.topic.replication.factor": "3"})
EAGER: Final = other(consumer={"partition.assignment.strategy": "range"})
COOPERATIVE: Final = other(consumer={"partition.assignment.strategy": "cooperative-sticky"})
SLOW_HEARTBEATS: Final = other(consumer={"heartbeat.interval.ms": "10000"})
LONG_POLLS: Final = other(consumer={"max.poll.interval.ms": "600000"})
LONG_SESSION: Final = other(cluster={"broker.session.timeout.ms": "18000"})

LEADER_FAILURE: Final[dict[str, Rule | Other]] = {
    "acks-0": other(producer={"acks": "all"}),
    "acks-1": other(producer={"acks": "all"}),
    "acks-all-min-isr-1": rules.any_replica_may_lead,
    "acks-all-min-isr-2": rules.watermark_is_the_leader_s_end,
    "baseline": rules.watermark_is_the_leader_s_end,
    "lost-acknowledgement": rules.repeated_batches_are_appended,
    "lost-acknowledgement-not-idempotent": other(producer={"enable.idempotence": "true"}),
    "no-unclean-election": rules.any_replica_may_lead,
    "one-replica": other(replication_factor=3),
    "one-replica-disk-gone": other(replication_factor=3),
    "unclean-election": other(topic={"unclean.leader.election.enable": "false"}),
    "auto-commit-repeats": other(consumer={"enable.auto.commit": "false"}),
    "committed-offsets-survive": rules.commits_are_dropped,
    "coordinator-dies": ONE_COPY_OF_OFFSETS,
    "data-leader-dies-no-rebalance": rules.any_metadata_makes_members_rejoin,
    "manual-commit-repeats": rules.commits_are_dropped,
    "read-committed": rules.open_transactions_are_shown,
    "read-uncommitted": rules.open_transactions_are_shown,
    "both-die-before-the-third-has-it": rules.watermark_is_the_leader_s_end,
    "five-replicas": rules.watermark_is_the_leader_s_end,
    "offsets-with-one-replica-earliest": THREE_COPIES_OF_OFFSETS,
    "offsets-with-one-replica-latest": THREE_COPIES_OF_OFFSETS,
    "offsets-with-three-replicas": ONE_COPY_OF_OFFSETS,
    "split-brain": rules.followers_cut_nothing,
    "below-the-high-watermark": rules.watermark_is_the_leader_s_end,
    "on-part-of-the-isr-kept": rules.the_last_in_sync_leads,
    "on-part-of-the-isr-lost": rules.followers_cut_nothing,
    "only-on-the-leader": rules.watermark_is_the_leader_s_end,
    "producer-buffer-expires": other(producer={"delivery.timeout.ms": "300000"}),
    "producer-buffer-survives-the-leader": rules.clients_never_ask_again,
    "buffer-full-drains": other(producer={"max.block.ms": "5000"}),
    "buffer-full-raises": other(producer={"max.block.ms": "200000"}),
    "idempotent": rules.repeated_batches_are_appended,
    "no-retries": other(producer={"retries": "5"}),
    "retries": other(producer={"retries": "0"}),
    "crash": rules.refused_addresses_prove_nothing,
    "crash-noticed-by-session": LONG_SESSION,
    "silent-host": rules.silent_brokers_stay,
    "dies-in-stage-1": rules.watermark_is_the_leader_s_end,
    "dies-in-stage-2-new-leader-has-it": rules.the_last_in_sync_leads,
    "dies-in-stage-2-new-leader-lacks-it": rules.followers_cut_nothing,
    "dies-in-stage-3": rules.repeated_batches_are_appended,
    "dies-in-stage-4": rules.watermark_is_the_leader_s_end,
    "old-leader-returns": rules.followers_cut_nothing,
}

PRODUCER_LOSS: Final[dict[str, Rule | Other]] = {
    "follower-pauses": rules.silent_brokers_stay,
    "leader-pauses-acks-1": other(producer={"acks": "all"}),
    "leader-pauses-acks-all": other(producer={"acks": "1"}),
    "no-leader-no-retries": other(producer={"request.timeout.ms": "5000", "delivery.timeout.ms": "10000"}),
    "not-leader-no-retries": other(producer={"retries": "5"}),
    "not-leader-retries": other(producer={"retries": "0", "enable.idempotence": "false"}),
    "producer-dies-with-buffered-records": other(producer={"linger.ms": "0"}),
}

ARCHITECTURE: Final[dict[str, Rule | Other]] = {
    "controller-dies": other(controllers=1),
    "consumer-dies-mid-batch": rules.commits_are_dropped,
    "leader-isolated-min-isr-1": rules.watermark_is_the_leader_s_end,
    "leader-isolated-min-isr-2": rules.watermark_is_the_leader_s_end,
    "followers-cut-off-min-isr-1": rules.nobody_lags,
    "followers-cut-off-min-isr-2": rules.too_few_in_sync_are_enough,
    "leader-epoch": rules.leader_epochs_are_not_looked_at,
    "controller-epoch": rules.late_controllers_are_believed,
    "partitions-1": rules.refused_addresses_prove_nothing,
    "partitions-1000": rules.refused_addresses_prove_nothing,
    "partitions-4000": rules.refused_addresses_prove_nothing,
}

REBALANCES: Final[dict[str, Rule | Other]] = {
    "dynamic-members-roll": other(consumer={"group.protocol": "consumer"}),
    "faster-heartbeats": other(consumer={"heartbeat.interval.ms": "10000"}),
    "join-consumer-protocol": other(consumer={"group.protocol": "classic"}),
    "join-cooperative": EAGER,
    "join-eager": COOPERATIVE,
    "longer-poll-interval": other(consumer={"max.poll.interval.ms": "300000"}),
    "longer-session": other(consumer={"session.timeout.ms": "30000"}),
    "rebalance-of-100-members": SLOW_HEARTBEATS,
    "rebalance-of-5-members": SLOW_HEARTBEATS,
    "rebalance-of-50-members": SLOW_HEARTBEATS,
    "rebalance-waits-for-the-slowest": other(consumer={"group.protocol": "consumer"}),
    "smaller-batches": other(consumer={"max.poll.records": "500"}),
    "static-member-restarts-in-time": rules.static_members_are_new_members,
    "static-member-restarts-too-late": other(consumer={"session.timeout.ms": "90000"}),
    "static-members-roll": rules.static_members_are_new_members,
    "storm-consumer-protocol": LONG_POLLS,
    "storm-cooperative": LONG_POLLS,
    "storm-eager": LONG_POLLS,
}

REPLICATION: Final[dict[str, Rule | Other]] = {
    "all-three-must-acknowledge": other(topic={"min.insync.replicas": "2"}),
    "isr-shrinks-and-expands": rules.nobody_lags,
    "min-isr-lost-and-regained": rules.too_few_in_sync_are_enough,
    "min-isr-lost-for-good": rules.too_few_in_sync_are_enough,
    "preferred-leader-comes-back": other(cluster={"auto.leader.rebalance.enable": "false"}),
    "two-replicas-min-isr-1": rules.any_replica_may_lead,
    "two-replicas-min-isr-2": rules.too_few_in_sync_are_enough,
    "unclean-election-8-6-4": rules.followers_cut_nothing,
    "clean-election-8-6-4": rules.any_replica_may_lead,
    "divergence": rules.followers_cut_nothing,
    "leaders-drift-and-return": other(cluster={"auto.leader.rebalance.enable": "false"}),
    "observer-has-no-say": rules.observers_are_waited_for,
    "observer-serves-its-rack": other(racks=()),
    "one-broker-dies": rules.the_last_in_sync_leads,
    "preferred-leader-lags": rules.preferred_leaders_need_not_be_in_sync,
    "rolling-restart": rules.brokers_stop_without_a_word,
    "stretch-of-two-sites": other(topic={"min.insync.replicas": "2"}),
    "stretch-without-third-place": other(controllers=5),
    "three-sites": other(is_placed_by_cluster=False),
    "two-brokers-die": rules.too_few_in_sync_are_enough,
    "unreplicated-acks-1": other(producer={"acks": "all"}),
    "unreplicated-acks-all": other(producer={"acks": "1"}),
    "zone-lost-with-racks": other(racks=()),
    "zone-lost-without-racks": other(racks=("a", "a", "b", "b", "c", "c"), is_placed_by_cluster=True),
}

IDEMPOTENCE: Final[dict[str, Rule | Other]] = {
    "late-batch-of-the-old-epoch": rules.fenced_producers_are_let_in,
    "leader-restarts-with-its-snapshot": rules.producers_are_forgotten_at_restart,
    "step-table-batch-is-not-there": rules.watermark_is_the_leader_s_end,
    "step-table-batch-is-there": rules.repeated_batches_are_appended,
    "producer-restarts-with-a-raised-epoch": rules.fenced_producers_are_let_in,
    "three-elections-in-a-row": rules.repeated_batches_are_appended,
}

FIELD: Final[dict[str, Rule | Other]] = {
    "aborted-reads": field_rules.aborted_transactions_are_not_told,
    "circular-reads": rules.open_transactions_are_shown,
    "late-batch-is-fenced": field_rules.ends_leave_the_epoch,
    "late-batch-replaces-the-next": field_rules.every_end_raises_the_epoch,
    "late-end-is-fenced": field_rules.ends_leave_the_epoch,
    "late-end-tears-the-next-transaction": field_rules.every_end_raises_the_epoch,
    "producer-starts-again-after-a-lost-end": field_rules.any_epoch_ends_a_transaction,
    "end-with-an-epoch-of-its-own": field_rules.any_epoch_ends_a_transaction,
    "last-epoch-is-ended": field_rules.epochs_have_no_end,
    "last-epoch-is-fenced": field_rules.epochs_have_no_end,
    "compacted-away-markers": field_rules.reads_end_with_the_segment,
    "consumer-notices-the-cut-log": field_rules.cut_logs_are_not_noticed,
    "healthy-cluster": field_rules.uncommitted_offsets_are_zero,
    "time-lookup-after-deleted-records": field_rules.lookups_find_deleted_records,
    "time-lookup-while-retention-deletes": field_rules.lookups_before_the_log_find_nothing,
    "topic-is-recreated": field_rules.recreated_topics_keep_their_epochs,
    "last-in-sync-loses-its-page-cache": rules.any_replica_may_lead,
    "late-replication-of-the-old-leader": rules.leader_epochs_are_not_looked_at,
    "offsets-stay-after-leader-changes": field_rules.repeated_batches_are_told_another_offset,
    "pause-and-kill": rules.repeated_batches_are_appended,
    "reassigned-while-leaders-die": field_rules.replicas_are_removed_at_once,
    "watermark-stands-below-min-isr": rules.too_few_in_sync_are_enough,
    "api-versions-header": field_rules.every_flexible_response_has_tags,
    "client-after-a-lost-end": field_rules.lost_responses_are_forgotten,
    "commit-response-is-lost": field_rules.repeated_ends_are_refused,
    "hostile-frames": field_rules.any_size_is_waited_for,
    "written-but-timed-out": rules.repeated_batches_are_appended,
    "written-but-timed-out-not-idempotent": other(producer={"enable.idempotence": "true"}),
}

MUTANTS: Final[dict[str, Rule | Other]] = {
    **LEADER_FAILURE,
    **PRODUCER_LOSS,
    **ARCHITECTURE,
    **REBALANCES,
    **REPLICATION,
    **IDEMPOTENCE,
    **FIELD,
}
