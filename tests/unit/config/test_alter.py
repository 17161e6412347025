from __future__ import annotations

import pytest

from strandline.config import (
    Altered,
    ConfigAlteration,
    DynamicConfigs,
    RefusedAlteration,
    alter_broker,
    alter_topic,
    create_topic,
    misdirected,
    replace_broker,
    replace_topic,
)
from strandline.config.alter import APPEND, DELETE, SET, SUBTRACT
from strandline.config.dynamic import ALL_BROKERS, BROKER, TOPIC

from .settings import running


def with_topic(**overrides: str) -> DynamicConfigs:
    configs = running()
    configs.set_overrides(TOPIC, "t", {name.replace("_", "."): value for name, value in overrides.items()})
    return configs


class TestIncremental:
    def test_set_adds_and_delete_removes(self) -> None:
        configs = with_topic(retention_ms="5")
        altered = alter_topic(
            configs,
            "t",
            [ConfigAlteration("segment.ms", SET, "7"), ConfigAlteration("retention.ms", DELETE, None)],
        )
        assert altered == Altered({"segment.ms": "7"}, (("segment.ms", "7"), ("retention.ms", None)))
        assert configs.overrides(TOPIC, "t") == {"retention.ms": "5"}

    def test_a_deletion_may_carry_a_value_which_does_not_count(self) -> None:
        configs = with_topic(retention_ms="5")
        configs.set_overrides(BROKER, ALL_BROKERS, {"log.retention.ms": "5"})
        altered = alter_topic(configs, "t", [ConfigAlteration("retention.ms", DELETE, "")])
        assert altered == Altered({}, (("retention.ms", None),))
        altered = alter_broker(configs, ALL_BROKERS, [ConfigAlteration("log.retention.ms", DELETE, "")])
        assert altered == Altered({}, (("log.retention.ms", None),))

    def test_a_value_that_stays_the_same_needs_no_record(self) -> None:
        configs = with_topic(retention_ms="5")
        changes = [ConfigAlteration("retention.ms", SET, "5"), ConfigAlteration("segment.ms", DELETE, None)]
        assert alter_topic(configs, "t", changes) == Altered({"retention.ms": "5"}, ())

    @pytest.mark.parametrize(
        ("current", "operation", "value", "expected"),
        [
            (None, APPEND, "compact", "delete,compact"),
            ("compact", APPEND, "delete", "compact,delete"),
            ("compact", APPEND, "compact", "compact"),
            ("", APPEND, "compact", "compact"),
            ("compact,delete", SUBTRACT, "delete", "compact"),
            ("compact", SUBTRACT, "delete", "compact"),
            (None, SUBTRACT, "delete", ""),
            ("compact", SUBTRACT, "compact,delete", ""),
        ],
    )
    def test_lists_are_edited_from_what_is_set_or_from_the_default(
        self, current: str | None, operation: int, value: str, expected: str
    ) -> None:
        configs = running() if current is None else with_topic(cleanup_policy=current)
        altered = alter_topic(configs, "t", [ConfigAlteration("cleanup.policy", operation, value)])
        assert isinstance(altered, Altered)
        assert altered.overrides == {"cleanup.policy": expected}

    @pytest.mark.parametrize(("operation", "verb"), [(APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")])
    @pytest.mark.parametrize("name", ["retention.ms", "no.such.key"])
    def test_only_lists_can_be_edited(self, name: str, operation: int, verb: str) -> None:
        refused = alter_topic(running(), "t", [ConfigAlteration(name, operation, "1")])
        assert refused == RefusedAlteration(
            "INVALID_CONFIG", f"Can't {verb} to key {name} because its type is not LIST."
        )

    def test_one_key_twice_is_refused(self) -> None:
        changes = [ConfigAlteration("retention.ms", SET, "1"), ConfigAlteration("retention.ms", SET, "2")]
        assert alter_topic(running(), "t", changes) == RefusedAlteration(
            "INVALID_REQUEST", "Error due to duplicate config keys"
        )

    def test_setting_null_is_refused(self) -> None:
        changes = [ConfigAlteration("retention.ms", SET, None), ConfigAlteration("segment.ms", APPEND, None)]
        expected = RefusedAlteration(
            "INVALID_REQUEST", "Null value not supported for : retention.ms, segment.ms"
        )
        assert alter_topic(running(), "t", changes) == expected
        assert alter_broker(running(), "", changes) == expected

    def test_an_unknown_operation_is_refused(self) -> None:
        refused = alter_topic(running(), "t", [ConfigAlteration("retention.ms", 9, "1")])
        assert refused == RefusedAlteration("INVALID_REQUEST", "Unknown operations type 9")


class TestTopics:
    def test_an_unknown_key_is_refused(self) -> None:
        refused = alter_topic(running(), "t", [ConfigAlteration("log.retention.ms", SET, "1")])
        assert refused == RefusedAlteration("INVALID_CONFIG", "Unknown topic config name: log.retention.ms")

    def test_a_bad_value_is_refused(self) -> None:
        refused = alter_topic(running(), "t", [ConfigAlteration("segment.bytes", SET, "5")])
        rule = "Invalid value 5 for configuration segment.bytes: Value must be at least 1048576"
        assert refused == RefusedAlteration("INVALID_CONFIG", rule)

    def test_a_value_that_no_record_can_hold_is_refused(self) -> None:
        refused = alter_topic(running(), "t", [ConfigAlteration("cleanup.policy", SET, "x" * 32768)])
        assert isinstance(refused, RefusedAlteration)
        assert refused.error == "INVALID_CONFIG"
        assert "32767" in refused.message

    def test_settings_are_checked_against_what_the_topic_already_has(self) -> None:
        configs = with_topic(max_compaction_lag_ms="5")
        refused = alter_topic(configs, "t", [ConfigAlteration("min.compaction.lag.ms", SET, "6")])
        rule = "conflict topic config setting min.compaction.lag.ms (6) > max.compaction.lag.ms (5)"
        assert refused == RefusedAlteration("INVALID_CONFIG", rule)

    def test_settings_are_checked_against_what_the_broker_gives(self) -> None:
        configs = running(log_cleaner_max_compaction_lag_ms="5")
        refused = alter_topic(configs, "t", [ConfigAlteration("min.compaction.lag.ms", SET, "6")])
        assert isinstance(refused, RefusedAlteration)

    def test_remote_storage_needs_brokers_that_have_it(self) -> None:
        change = [ConfigAlteration("remote.storage.enable", SET, "true")]
        refused = alter_topic(running(), "t", change)
        assert isinstance(refused, RefusedAlteration)
        assert "remote.log.storage.system.enable" in refused.message
        tiered = running(remote_log_storage_system_enable="true")
        assert isinstance(alter_topic(tiered, "t", change), Altered)
        compacted = [*change, ConfigAlteration("cleanup.policy", SET, "compact")]
        assert isinstance(alter_topic(tiered, "t", compacted), RefusedAlteration)

    @pytest.mark.parametrize(
        ("local", "total", "fits"),
        [("5", "5", True), ("6", "5", False), ("-1", "5", False), ("6", "-1", True)],
    )
    def test_local_retention_cannot_exceed_retention(self, local: str, total: str, fits: bool) -> None:
        given: list[tuple[str, str | None]] = [("remote.storage.enable", "true")]
        given += [("local.retention.ms", local), ("retention.ms", total)]
        altered = create_topic(running(remote_log_storage_system_enable="true"), given)
        assert isinstance(altered, Altered) == fits

    def test_remote_storage_is_not_turned_off_by_accident(self) -> None:
        configs = with_topic(remote_storage_enable="true")
        off = ConfigAlteration("remote.storage.enable", SET, "false")
        delete = ConfigAlteration("remote.log.delete.on.disable", SET, "true")
        assert isinstance(alter_topic(configs, "t", [off]), RefusedAlteration)
        assert isinstance(alter_topic(configs, "t", [off, delete]), Altered)

    def test_replacing_removes_what_is_not_given(self) -> None:
        configs = with_topic(retention_ms="5", segment_ms="6")
        altered = replace_topic(configs, "t", [("segment.ms", "7")])
        assert altered == Altered({"segment.ms": "7"}, (("segment.ms", "7"), ("retention.ms", None)))
        assert replace_topic(configs, "t", [("x", "1")]) == RefusedAlteration(
            "INVALID_CONFIG", "Unknown topic config name: x"
        )

    def test_a_new_topic_is_checked_alike(self) -> None:
        configs = running()
        created = create_topic(configs, [("retention.ms", "5")])
        assert created == Altered({"retention.ms": "5"}, (("retention.ms", "5"),))
        nulls = create_topic(configs, [("retention.ms", None), ("segment.ms", None)])
        message = "Null value not supported for topic configs: retention.ms,segment.ms"
        assert nulls == RefusedAlteration("INVALID_CONFIG", message)
        assert isinstance(create_topic(configs, [("retention.ms", "x")]), RefusedAlteration)


class TestBrokers:
    def test_a_change_for_all_brokers_is_taken(self) -> None:
        altered = alter_broker(running(), ALL_BROKERS, [ConfigAlteration("log.retention.ms", SET, "5")])
        assert altered == Altered({"log.retention.ms": "5"}, (("log.retention.ms", "5"),))

    def test_a_record_is_written_even_if_nothing_changes_so_that_files_are_read_again(self) -> None:
        configs = running()
        configs.set_overrides(BROKER, "1", {"log.retention.ms": "5"})
        altered = alter_broker(configs, "1", [ConfigAlteration("log.retention.ms", SET, "5")])
        assert altered == Altered({"log.retention.ms": "5"}, (("log.retention.ms", "5"),))

    @pytest.mark.parametrize("broker", [ALL_BROKERS, "1"])
    def test_a_key_that_counts_only_at_start_is_refused(self, broker: str) -> None:
        refused = alter_broker(running(), broker, [ConfigAlteration("num.partitions", SET, "3")])
        assert refused == RefusedAlteration(
            "INVALID_REQUEST", "Cannot update these configs dynamically: [num.partitions]"
        )

    def test_a_key_for_one_broker_is_refused_for_all(self) -> None:
        change = [ConfigAlteration("cordoned.log.dirs", SET, "*")]
        refused = alter_broker(running(), ALL_BROKERS, change)
        message = "Cannot update these configs at default cluster level, broker id must be specified"
        assert refused == RefusedAlteration("INVALID_REQUEST", f"{message}: [cordoned.log.dirs]")
        assert isinstance(alter_broker(running(), "1", change), Altered)

    def test_certificates_change_only_for_one_listener(self) -> None:
        refused = alter_broker(running(), "1", [ConfigAlteration("ssl.keystore.location", SET, "/k")])
        assert isinstance(refused, RefusedAlteration)
        assert refused.message.endswith("using the listener prefix: [ssl.keystore.location]")
        prefixed = "listener.name.plaintext.ssl.keystore.location"
        assert isinstance(alter_broker(running(), "1", [ConfigAlteration(prefixed, SET, "/k")]), Altered)
        assert isinstance(
            alter_broker(running(), ALL_BROKERS, [ConfigAlteration(prefixed, SET, "/k")]), RefusedAlteration
        )

    def test_a_broker_that_has_no_number_cannot_be_altered(self) -> None:
        refused = alter_broker(running(), "x", [ConfigAlteration("log.retention.ms", SET, "5")])
        assert refused == RefusedAlteration("INVALID_REQUEST", "Node id must be an integer, but it is: x")

    def test_a_broker_is_altered_through_itself(self) -> None:
        message = "Unexpected broker id, expected 1, but received 2"
        assert misdirected(1, "2") == RefusedAlteration("INVALID_REQUEST", message)
        assert misdirected(1, "1") is None
        assert misdirected(1, ALL_BROKERS) is None

    def test_a_key_that_nobody_knows_may_belong_to_a_plugin(self) -> None:
        altered = alter_broker(running(), ALL_BROKERS, [ConfigAlteration("some.plugin.key", SET, "5")])
        assert isinstance(altered, Altered)

    def test_a_bad_value_is_refused(self) -> None:
        refused = alter_broker(running(), ALL_BROKERS, [ConfigAlteration("log.segment.bytes", SET, "5")])
        rule = "Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576"
        assert refused == RefusedAlteration("INVALID_REQUEST", rule)

    def test_a_broker_that_could_not_start_like_this_is_refused(self) -> None:
        refused = alter_broker(running(), ALL_BROKERS, [ConfigAlteration("max.connections.per.ip", SET, "0")])
        assert isinstance(refused, RefusedAlteration)
        assert refused.error == "INVALID_REQUEST"

    @pytest.mark.parametrize(("threads", "fits"), [("3", False), ("4", True), ("16", True), ("17", False)])
    def test_a_pool_may_be_halved_or_doubled_at_once_and_no_more(self, threads: str, fits: bool) -> None:
        altered = alter_broker(running(), ALL_BROKERS, [ConfigAlteration("num.io.threads", SET, threads)])
        assert isinstance(altered, Altered) == fits
        if isinstance(altered, RefusedAlteration):
            assert altered.message.startswith("Invalid dynamic configuration")

    def test_an_override_pushes_out_what_was_given_in_hours(self) -> None:
        configs = running(log_retention_hours="1")
        change = [ConfigAlteration("log.local.retention.ms", SET, "7200000")]
        assert isinstance(alter_broker(configs, ALL_BROKERS, change), RefusedAlteration)
        longer = [*change, ConfigAlteration("log.retention.ms", SET, "7200000")]
        assert isinstance(alter_broker(configs, ALL_BROKERS, longer), Altered)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("log.retention.ms", "Config value append is not allowed for config key: log.retention.ms"),
            ("no.such.key", "Unknown config name: no.such.key"),
        ],
    )
    def test_only_lists_can_be_edited(self, name: str, message: str) -> None:
        refused = alter_broker(running(), ALL_BROKERS, [ConfigAlteration(name, APPEND, "5")])
        assert refused == RefusedAlteration("INVALID_CONFIG", message)

    def test_lists_are_edited(self) -> None:
        altered = alter_broker(
            running(), ALL_BROKERS, [ConfigAlteration("log.cleanup.policy", APPEND, "compact")]
        )
        assert altered == Altered(
            {"log.cleanup.policy": "delete,compact"}, (("log.cleanup.policy", "delete,compact"),)
        )

    def test_replacing_removes_what_is_not_given(self) -> None:
        configs = running()
        configs.set_overrides(BROKER, ALL_BROKERS, {"log.retention.ms": "5", "max.connections": "9"})
        altered = replace_broker(configs, ALL_BROKERS, [("max.connections", "8")])
        assert altered == Altered(
            {"max.connections": "8"}, (("max.connections", "8"), ("log.retention.ms", None))
        )
        refused = replace_broker(configs, ALL_BROKERS, [("num.partitions", "8")])
        assert isinstance(refused, RefusedAlteration)
