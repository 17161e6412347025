from __future__ import annotations

import pytest

from strandline.config import BrokerConfig, InvalidConfig, Listener

from .settings import ONE_NODE, started


def test_a_setting_that_is_missing_has_its_default() -> None:
    config = started()
    assert config.int("num.partitions") == 1
    assert config.text("compression.type") == "producer"
    assert config.strings("log.cleanup.policy") == ("delete",)
    assert config.flag("auto.create.topics.enable") is True
    assert config.double("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.optional_int("log.retention.ms") is None
    assert config.optional_text("broker.rack") is None
    assert config.value("advertised.listeners") is None
    assert config.log_dirs == ("/tmp/kafka-logs",)


def test_a_setting_is_typed_and_remembered_as_it_was_written() -> None:
    config = started(num_partitions=" 3 ", log_dirs="/a, /b", broker_rack="r1")
    assert config.int("num.partitions") == 3
    assert config.log_dirs == ("/a", "/b")
    assert config.optional_text("broker.rack") == "r1"
    assert config.originals["num.partitions"] == " 3 "
    assert "log.dir" not in config.originals


def test_asking_for_the_wrong_type_is_a_mistake_in_the_program() -> None:
    config = started()
    with pytest.raises(AssertionError):
        config.int("auto.create.topics.enable")
    with pytest.raises(AssertionError):
        config.text("num.partitions")
    with pytest.raises(KeyError):
        config.int("no.such.key")


def test_a_configuration_never_changes() -> None:
    config = started()
    with pytest.raises(AssertionError):
        config.log_dirs = ("/elsewhere",)
    with pytest.raises(TypeError):
        config.originals["num.partitions"] = "2"  # type: ignore[index]


@pytest.mark.parametrize("name", ["node.id", "process.roles", "controller.listener.names"])
def test_a_key_without_a_default_must_be_given(name: str) -> None:
    with pytest.raises(InvalidConfig, match="Missing required configuration") as refused:
        BrokerConfig.from_strings({key: value for key, value in ONE_NODE.items() if key != name})
    assert refused.value.key == name


def test_a_bad_value_stops_with_key_value_and_allowed_range() -> None:
    with pytest.raises(InvalidConfig) as refused:
        started(num_partitions="0")
    assert str(refused.value) == (
        "Invalid value 0 for configuration num.partitions: Value must be at least 1 (allowed: at least 1)"
    )


def test_node_id_and_broker_id_stand_for_each_other() -> None:
    given = {key: value for key, value in ONE_NODE.items() if key != "node.id"}
    config = BrokerConfig.from_strings({**given, "broker.id": "7"})
    assert config.node_id == 7
    assert config.static["node.id"] == "7"
    assert "node.id" not in config.originals
    with pytest.raises(InvalidConfig, match="must be the same number"):
        started(broker_id="2")


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("num.partition", "did you mean num.partitions?"),
            ("log.recovery.threads.per.data.dir", "did you mean num.recovery.threads.per.data.dir?"),
            (
                "retention.ms",
                "is a key of topics, not of brokers; its default for all topics is log.retention.ms",
            ),
            ("leader.replication.throttled.rate", "can only be set while the broker runs"),
            ("qqq.zzz", "Strandline has no setting qqq.zzz"),
        ],
    )
    def test_an_unknown_key_is_a_warning_with_the_nearest_known_one(self, name: str, hint: str) -> None:
        (warning,) = BrokerConfig.from_strings({**ONE_NODE, name: "1"}).warnings
        assert warning.key == name
        assert hint in warning.message

    @pytest.mark.parametrize(
        "name",
        [
            "listener.name.plaintext.ssl.keystore.location",
            "listener.name.plaintext.max.connections",
            "listener.name.plaintext.plain.sasl.jaas.config",
            "config.providers.file.class",
            "rsm.config.bucket",
            "rlmm.config.topic",
        ],
    )
    def test_a_key_with_a_known_prefix_passes_silently(self, name: str) -> None:
        assert BrokerConfig.from_strings({**ONE_NODE, name: "1"}).warnings == ()

    def test_after_the_prefix_of_a_listener_an_unknown_key_is_a_warning_too(self) -> None:
        (warning,) = BrokerConfig.from_strings({**ONE_NODE, "listener.name.plaintext.x.y": "1"}).warnings
        assert warning.key == "listener.name.plaintext.x.y"

    def test_after_the_prefix_of_a_listener_a_bad_value_stops_the_node(self) -> None:
        name = "listener.name.plaintext.max.connections"
        with pytest.raises(InvalidConfig, match=f"Invalid value x for configuration {name}"):
            BrokerConfig.from_strings({**ONE_NODE, name: "x"})


class TestListeners:
    def test_name_host_port_and_protocol_are_read(self) -> None:
        config = started(listeners="PLAINTEXT://127.0.0.1:9092,CONTROLLER://[::1]:0")
        assert config.listeners == (
            Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT"),
            Listener("CONTROLLER", "::1", 0, "PLAINTEXT"),
        )
        assert config.broker_listeners == config.listeners[:1]
        assert config.controller_listeners == config.listeners[1:]

    def test_names_are_compared_in_capitals(self) -> None:
        config = started(listeners="plaintext://h:1,CONTROLLER://h:2")
        assert config.listeners[0].name == "PLAINTEXT"

    def test_without_advertised_listeners_the_listeners_are_advertised(self) -> None:
        config = started()
        assert config.advertised_listeners == (Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),)

    def test_advertised_listeners_replace_hosts_and_ports(self) -> None:
        config = started(advertised_listeners="PLAINTEXT://public:19092")
        assert config.advertised_listeners == (Listener("PLAINTEXT", "public", 19092, "PLAINTEXT"),)
        assert config.listeners[0].port == 9092

    def test_several_listeners_may_share_a_protocol(self) -> None:
        config = started(
            listeners="IN://:9092,OUT://:9094,CONTROLLER://:9093",
            listener_security_protocol_map="IN:PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            inter_broker_listener_name="IN",
        )
        assert [listener.name for listener in config.advertised_listeners] == ["IN", "OUT"]
        assert config.inter_broker_listener_name == "IN"

    def test_one_port_may_serve_ipv4_and_ipv6(self) -> None:
        config = started(listeners="PLAINTEXT://127.0.0.1:9092,CONTROLLER://[::1]:9092")
        assert {listener.port for listener in config.listeners} == {9092}

    @pytest.mark.parametrize(
        ("listeners", "reason"),
        [
            ("PLAINTEXT://:1,PLAINTEXT://:2,CONTROLLER://:3", "must have a different name"),
            ("PLAINTEXT://:1,CONTROLLER://:1", "port 1 is used twice"),
            ("PLAINTEXT://10.0.0.1:1,CONTROLLER://10.0.0.2:1", "port 1 is used twice"),
            ("PLAINTEXT:1,CONTROLLER://:2", "no address: PLAINTEXT:1"),
            ("PLAINTEXT://:x,CONTROLLER://:2", "no address: PLAINTEXT://:x"),
            ("PLAINTEXT://:70000,CONTROLLER://:2", "impossible port"),
            (
                "FAST://:1,CONTROLLER://:2",
                "listener FAST whose protocol is unknown; add it to listener.security",
            ),
            ("CONTROLLER://:2", "for clients"),
            ("PLAINTEXT://:1", "controller.listener.names must only name entries of listeners"),
            ("PLAINTEXT://0.0.0.0:1,CONTROLLER://:2", "clients cannot connect to 0.0.0.0"),
        ],
    )
    def test_listeners_that_cannot_work_are_refused(self, listeners: str, reason: str) -> None:
        with pytest.raises(InvalidConfig, match=reason):
            started(listeners=listeners)

    def test_the_voters_list_says_where_a_controller_on_every_interface_is_reached(self) -> None:
        config = started(
            controller_quorum_bootstrap_servers="", controller_quorum_voters="1@here:19093,2@there:9093"
        )
        assert config.advertised_controller_listeners == (Listener("CONTROLLER", "here", 19093, "PLAINTEXT"),)

    def test_an_open_host_of_a_controller_is_left_to_the_node(self) -> None:
        config = started(listeners="PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093")
        assert config.advertised_controller_listeners == (Listener("CONTROLLER", "", 9093, "PLAINTEXT"),)


class TestChecksBetweenKeys:
    @pytest.mark.parametrize(
        ("settings", "key", "advice"),
        [
            ({"log_roll_ms": "0"}, "log.roll.ms", "at least 1"),
            ({"log_retention_minutes": "0"}, "log.retention.minutes", "-1 to keep records forever"),
            (
                {"queued_max_request_bytes": "10"},
                "queued.max.request.bytes",
                "socket.request.max.bytes (104857600)",
            ),
            ({"max_connections_per_ip": "0"}, "max.connections.per.ip", "max.connections.per.ip.overrides"),
            ({"replica_lag_time_max_ms": "1"}, "replica.fetch.wait.max.ms", "replica.lag.time.max.ms (1)"),
            ({"connections_max_idle_ms": "50"}, "connection.failed.authentication.delay.ms", "less than"),
            ({"controller_quorum_bootstrap_servers": ""}, "controller.quorum.bootstrap.servers", "must name"),
            ({"controller_quorum_voters": "2@h:1"}, "controller.quorum.voters", "whose node.id is 1"),
            ({"group_consumer_session_timeout_ms": "1"}, "group.consumer.session.timeout.ms", "between"),
            ({"cordoned_log_dirs": "/x"}, "cordoned.log.dirs", "it also has /x"),
            (
                {"inter_broker_listener_name": "X"},
                "inter.broker.listener.name",
                "listener.security.protocol.map",
            ),
        ],
    )
    def test_keys_that_contradict_each_other_are_refused_with_advice(
        self, settings: dict[str, str], key: str, advice: str
    ) -> None:
        with pytest.raises(InvalidConfig) as refused:
            started(**settings)
        assert refused.value.key == key
        assert advice in str(refused.value)

    def test_a_broker_alone_must_not_listen_as_a_controller(self) -> None:
        with pytest.raises(InvalidConfig, match="remove CONTROLLER from listeners"):
            started(process_roles="broker")

    def test_a_controller_alone_must_not_listen_as_a_broker(self) -> None:
        with pytest.raises(InvalidConfig, match="it also has PLAINTEXT"):
            started(process_roles="controller")

    def test_a_node_of_one_role_starts(self) -> None:
        broker = started(process_roles="broker", listeners="PLAINTEXT://:9092")
        assert (broker.is_broker, broker.is_controller) == (True, False)
        controller = started(process_roles="controller", listeners="CONTROLLER://:9093")
        assert (controller.is_broker, controller.is_controller) == (False, True)

    def test_a_mistake_that_apache_kafka_only_logs_is_a_warning(self) -> None:
        (warning,) = started(broker_heartbeat_interval_ms="8000").warnings
        assert warning.key == "broker.heartbeat.interval.ms"
        (warning,) = started(process_roles="broker", listeners="PLAINTEXT://:1", num_partitions="2").warnings
        assert warning.key == "num.partitions"
