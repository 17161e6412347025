from __future__ import annotations

import pytest

from strandline.config.describe import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    STATIC_BROKER_CONFIG,
    TOPIC_CONFIG,
    ConfigSynonym,
    DescribedConfig,
    created_topic_entries,
    describe_broker,
    describe_topic,
)
from strandline.config.dynamic import ALL_BROKERS, BROKER, TOPIC, DynamicConfigs

from .settings import running


def entry(configs: DynamicConfigs, name: str, topic: str | None = None) -> DescribedConfig:
    (found,) = (
        describe_broker(configs, 1, [name]) if topic is None else describe_topic(configs, topic, [name])
    )
    return found


class TestPrecedence:
    def test_for_a_broker_own_then_shared_then_static_then_default(self) -> None:
        configs = running()
        assert configs.broker_value("message.max.bytes") == 1_048_588
        configs = running(message_max_bytes="1")
        assert configs.broker_value("message.max.bytes") == 1
        configs.set_overrides(BROKER, ALL_BROKERS, {"message.max.bytes": "2"})
        assert configs.broker_value("message.max.bytes") == 2
        configs.set_overrides(BROKER, "1", {"message.max.bytes": "3"})
        assert configs.broker_value("message.max.bytes") == 3
        configs.set_overrides(BROKER, "1", {})
        assert configs.broker_value("message.max.bytes") == 2

    def test_for_a_topic_its_own_setting_comes_first_and_then_the_brokers(self) -> None:
        configs = running(log_retention_hours="1")
        assert configs.topic("t").retention_ms == 3_600_000
        configs.set_overrides(BROKER, ALL_BROKERS, {"log.retention.ms": "2"})
        assert configs.topic("t").retention_ms == 2
        configs.set_overrides(BROKER, "1", {"log.retention.ms": "3"})
        assert configs.topic("t").retention_ms == 3
        configs.set_overrides(TOPIC, "t", {"retention.ms": "4"})
        assert configs.topic("t").retention_ms == 4
        assert configs.topic("other").retention_ms == 3

    @pytest.mark.parametrize(
        ("settings", "retention_ms"),
        [
            ({}, 604_800_000),
            ({"log_retention_hours": "2"}, 7_200_000),
            ({"log_retention_hours": "2", "log_retention_minutes": "3"}, 180_000),
            ({"log_retention_hours": "2", "log_retention_minutes": "3", "log_retention_ms": "4"}, 4),
            ({"log_retention_hours": "-1"}, -1),
            ({"log_retention_minutes": "-7"}, -1),
        ],
    )
    def test_of_retention_in_several_units_the_finest_counts(
        self, settings: dict[str, str], retention_ms: int
    ) -> None:
        assert running(**settings).topic("t").retention_ms == retention_ms

    def test_flushing_falls_back_to_the_scheduler_interval(self) -> None:
        assert running(log_flush_scheduler_interval_ms="5").topic("t").flush_ms == 5
        assert (
            running(log_flush_scheduler_interval_ms="5", log_flush_interval_ms="6").topic("t").flush_ms == 6
        )

    def test_overrides_of_other_brokers_do_not_count_here(self) -> None:
        configs = running()
        configs.set_overrides(BROKER, "2", {"log.retention.ms": "2"})
        assert configs.topic("t").retention_ms == 604_800_000
        assert configs.overrides(BROKER, "2") == {"log.retention.ms": "2"}


class TestTopicConfig:
    def test_topics_without_overrides_share_one_object(self) -> None:
        configs = running()
        assert configs.topic("a") is configs.topic("b")
        assert configs.topic("a") is configs.topic_defaults

    def test_a_topic_keeps_its_object_until_something_changes(self) -> None:
        configs = running()
        configs.set_overrides(TOPIC, "t", {"retention.ms": "4"})
        before = configs.topic("t")
        assert configs.topic("t") is before
        configs.set_overrides(TOPIC, "u", {"retention.ms": "5"})
        assert configs.topic("t") is before
        configs.set_overrides(BROKER, ALL_BROKERS, {"log.segment.bytes": "2000000"})
        assert configs.topic("t") is not before
        assert (configs.topic("t").retention_ms, configs.topic("t").segment_bytes) == (4, 2_000_000)

    def test_without_its_overrides_a_topic_shares_again(self) -> None:
        configs = running()
        configs.set_overrides(TOPIC, "t", {"retention.ms": "4"})
        configs.topic("t")
        configs.set_overrides(TOPIC, "t", {})
        assert configs.topic("t") is configs.topic_defaults

    def test_attributes_are_typed(self) -> None:
        topic = running().topic("t")
        assert topic.cleanup_policy == ("delete",)
        assert topic.min_cleanable_dirty_ratio == 0.5
        assert topic.message_timestamp_type == "CreateTime"
        assert topic.preallocate is False
        assert topic.message_timestamp_after_max_ms == 3_600_000

    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError, match="replaced, never changed"):
            running().topic("t").retention_ms = 5

    def test_tests_may_have_segments_below_the_lower_bound(self) -> None:
        configs = running()
        configs.set_overrides(TOPIC, "t", {"internal.segment.bytes": "100", "segment.bytes": "2000000"})
        assert configs.topic("t").segment_bytes == 100
        assert entry(configs, "segment.bytes", "t").value == "2000000"

    def test_an_override_that_cannot_be_read_is_passed_over(self) -> None:
        configs = running()
        configs.set_overrides(TOPIC, "t", {"retention.ms": "soon", "from.the.future": "1", "segment.ms": "7"})
        assert (configs.topic("t").retention_ms, configs.topic("t").segment_ms) == (604_800_000, 7)
        configs.set_overrides(BROKER, "1", {"log.segment.bytes": "1", "num.partitions": "9"})
        configs.set_overrides(BROKER, ALL_BROKERS, {"listeners": "PLAINTEXT://:1"})
        assert configs.topic("t").segment_bytes == 2**30
        assert configs.broker_value("num.partitions") == 1
        assert configs.broker_value("listeners") == ("PLAINTEXT://:9092", "CONTROLLER://:9093")


def test_the_assignment_interval_stays_within_its_bounds() -> None:
    configs = running()
    configs.set_overrides(BROKER, ALL_BROKERS, {"group.consumer.assignment.interval.ms": "99000"})
    assert configs.broker_value("group.consumer.assignment.interval.ms") == 15_000


class TestDescribeTopic:
    def test_every_documented_key_is_described_in_the_order_of_names(self) -> None:
        names = [each.name for each in describe_topic(running(), "t")]
        assert names == sorted(names)
        assert len(names) == 33
        assert "internal.segment.bytes" not in names

    def test_an_override_comes_first_among_its_synonyms(self) -> None:
        configs = running(log_segment_bytes="2000000")
        configs.set_overrides(TOPIC, "t", {"segment.bytes": " 3000000 "})
        configs.set_overrides(BROKER, ALL_BROKERS, {"log.segment.bytes": "4000000"})
        configs.set_overrides(BROKER, "1", {"log.segment.bytes": "5000000"})
        described = entry(configs, "segment.bytes", "t")
        assert (described.value, described.source, described.type_code) == ("3000000", TOPIC_CONFIG, 3)
        assert described.synonyms == (
            ConfigSynonym("segment.bytes", "3000000", TOPIC_CONFIG),
            ConfigSynonym("log.segment.bytes", "5000000", DYNAMIC_BROKER_CONFIG),
            ConfigSynonym("log.segment.bytes", "4000000", DYNAMIC_DEFAULT_BROKER_CONFIG),
            ConfigSynonym("log.segment.bytes", "2000000", STATIC_BROKER_CONFIG),
            ConfigSynonym("log.segment.bytes", "1073741824", DEFAULT_CONFIG),
        )
        assert not described.is_read_only
        assert not described.is_default
        assert described.documentation

    def test_retention_given_in_hours_is_described_as_a_default_as_kafka_does(self) -> None:
        described = entry(running(log_retention_hours="1"), "retention.ms", "t")
        assert (described.value, described.source, described.synonyms) == ("3600000", DEFAULT_CONFIG, ())

    def test_only_wanted_keys_are_described_and_none_wanted_means_all(self) -> None:
        configs = running()
        assert [each.name for each in describe_topic(configs, "t", ["retention.ms", "x"])] == ["retention.ms"]
        assert len(describe_topic(configs, "t", [])) == 33


class TestDescribeBroker:
    def test_node_and_broker_id_are_both_static(self) -> None:
        assert entry(running(), "broker.id").source == STATIC_BROKER_CONFIG
        assert entry(running(), "broker.id").is_read_only

    def test_passwords_are_never_shown(self) -> None:
        described = entry(running(ssl_key_password="secret"), "ssl.key.password")
        assert (described.value, described.is_sensitive) == (None, True)
        assert described.synonyms == (ConfigSynonym("ssl.key.password", None, STATIC_BROKER_CONFIG),)

    def test_an_unknown_key_may_be_a_password(self) -> None:
        described = entry(running(some_plugin_key="x"), "some.plugin.key")
        assert (described.value, described.is_sensitive, described.type_code) == (None, True, 0)
        assert described.is_read_only

    def test_an_internal_key_is_shown_only_where_it_was_set(self) -> None:
        assert describe_broker(running(), 1, ["log.initial.task.delay.ms"]) == ()
        assert entry(running(log_initial_task_delay_ms=" 5 "), "log.initial.task.delay.ms").value == " 5 "

    def test_settings_for_all_brokers_are_described_alone(self) -> None:
        configs = running(log_retention_ms="1")
        assert describe_broker(configs, None) == ()
        configs.set_overrides(BROKER, ALL_BROKERS, {"log.retention.ms": "2", "num.partitions": "3"})
        (described,) = describe_broker(configs, None)
        assert described.synonyms == (ConfigSynonym("log.retention.ms", "2", DYNAMIC_DEFAULT_BROKER_CONFIG),)

    def test_another_broker_cannot_be_described(self) -> None:
        with pytest.raises(AssertionError):
            describe_broker(running(), 2)


class TestCreatedTopic:
    def test_synonyms_in_other_units_are_sources_and_are_converted(self) -> None:
        entries = {each.name: each for each in created_topic_entries(running(log_retention_hours="2"), {})}
        retention = entries["retention.ms"]
        assert (retention.value, retention.source) == ("7200000", STATIC_BROKER_CONFIG)
        assert (entries["segment.ms"].value, entries["segment.ms"].source) == ("604800000", DEFAULT_CONFIG)

    def test_its_own_settings_are_given_as_they_were_written(self) -> None:
        entries = {each.name: each for each in created_topic_entries(running(), {"retention.ms": " 5 "})}
        assert (entries["retention.ms"].value, entries["retention.ms"].source) == (" 5 ", TOPIC_CONFIG)
