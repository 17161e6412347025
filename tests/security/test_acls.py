"""Rules at work: real clients, the command line, restarts, clusters and lock-outs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from strandline.cli.main import main
from strandline.client import Acl
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess, running_broker

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node",
}
WAIT_S = 20.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    security = DevelopmentSecurity(tmp_path_factory.mktemp("security"), "SASL_PLAINTEXT")
    with running_broker(
        security=security, **{key.replace(".", "_"): value for key, value in AUTHORIZED.items()}
    ) as started:
        yield started


@pytest.fixture(scope="module")
def node_settings(broker: BrokerProcess) -> dict[str, str]:
    """Of the super user, for librdkafka."""
    assert broker.security is not None
    password = (broker.security.directory / "broker.password").read_text().strip()
    return broker.librdkafka_settings | {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "node",
        "sasl.password": password,
    }


@pytest.fixture(scope="module")
def admin(node_settings: dict[str, str]) -> AdminClient:
    return AdminClient(node_settings)


def produced(settings: dict[str, str], topic: str) -> str | None:
    """Returns the name of the error with which a record is refused; None if it is written."""
    errors: list[str | None] = []
    producer = Producer(settings | {"message.timeout.ms": 10_000})
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error and error.name()))
    producer.flush(WAIT_S)
    return errors[0]


def binding(name: str, operation: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> AclBinding:
    return AclBinding(
        kind, name, ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW
    )


def test_a_producer_writes_to_topics_that_a_rule_allows(
    broker: BrokerProcess, admin: AdminClient, strandline_topic: str
) -> None:
    admin.create_topics([NewTopic(strandline_topic, 1, 1)])[strandline_topic].result(WAIT_S)
    assert produced(broker.librdkafka_settings, strandline_topic) == "TOPIC_AUTHORIZATION_FAILED"
    rule = binding(strandline_topic, AclOperation.WRITE)
    admin.create_acls([rule])[rule].result(WAIT_S)
    assert produced(broker.librdkafka_settings, strandline_topic) is None
    found = admin.describe_acls(
        AclBindingFilter(
            ResourceType.TOPIC,
            strandline_topic,
            ResourcePatternType.MATCH,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
    ).result(WAIT_S)
    assert found == [rule]
    every = AclBindingFilter(
        ResourceType.ANY,
        strandline_topic,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert admin.delete_acls([every])[every].result(WAIT_S) == [rule]
    assert produced(broker.librdkafka_settings, strandline_topic) == "TOPIC_AUTHORIZATION_FAILED"
    assert "denied principal=User:alice operation=DESCRIBE" in broker.log_text


def test_a_user_without_rights_changes_nothing(broker: BrokerProcess, strandline_topic: str) -> None:
    alice = AdminClient(broker.librdkafka_settings)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        alice.create_topics([NewTopic(strandline_topic, 1, 1)])[strandline_topic].result(WAIT_S)
    rule = binding(strandline_topic, AclOperation.ALL)
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        alice.create_acls([rule])[rule].result(WAIT_S)


def test_rules_are_kept_over_a_kill(broker: BrokerProcess, admin: AdminClient, strandline_topic: str) -> None:
    admin.create_topics([NewTopic(strandline_topic, 1, 1)])[strandline_topic].result(WAIT_S)
    rule = binding(strandline_topic, AclOperation.WRITE)
    admin.create_acls([rule])[rule].result(WAIT_S)
    broker.kill()
    broker.start()
    assert produced(broker.librdkafka_settings, strandline_topic) is None
    assert produced(broker.librdkafka_settings, "__consumer_offsets") == "TOPIC_AUTHORIZATION_FAILED"


def test_the_command_adds_lists_and_removes_rules(
    broker: BrokerProcess, strandline_topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert broker.security is not None
    password = (broker.security.directory / "broker.password").read_text().strip()
    config = tmp_path / "node.properties"
    config.write_text(
        f"bootstrap.servers={broker.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="node" password="{password}";\n'
    )
    where = ["--command-config", str(config)]
    which = ["--topic", strandline_topic, "--principal", "User:bob"]
    assert main(["acls", "add", *which, "--operation", "read", "--operation", "write", *where]) == 0
    capsys.readouterr()
    assert main(["acls", "list", "--topic", strandline_topic, "--json", *where]) == 0
    listed = json.loads(capsys.readouterr().out)["acls"]
    assert sorted(each["operation"] for each in listed) == ["read", "write"]
    assert main(["acls", "remove", *which, "--yes", *where]) == 0
    capsys.readouterr()
    assert main(["acls", "list", "--topic", strandline_topic, "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["acls"] == []


def test_a_node_that_would_lock_everybody_out_does_not_start() -> None:
    settings = {"authorizer_class_name": AUTHORIZED["authorizer.class.name"]}
    with (
        pytest.raises(RuntimeError, match=r"everybody would be locked out.*super\.users"),
        running_broker(**settings),
    ):
        pass


def test_rules_without_an_authorizer_are_logged_and_have_no_effect(tmp_path: Path) -> None:
    rule = binding("orders", AclOperation.READ)
    with running_broker(
        data_dir=tmp_path / "data",
        authorizer_class_name=AUTHORIZED["authorizer.class.name"],
        super_users="User:ANONYMOUS",
    ) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_acls([rule])[rule].result(WAIT_S)
    with running_broker(data_dir=tmp_path / "data") as broker:
        assert "ACLs have no effect" in broker.log_text
        assert produced({"bootstrap.servers": broker.bootstrap}, "payments") is None
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
            admin.create_acls([rule])[rule].result(WAIT_S)


def test_administrative_acts_are_in_the_audit_log(
    broker: BrokerProcess, admin: AdminClient, strandline_topic: str
) -> None:
    admin.create_topics([NewTopic(strandline_topic, 1, 1)])[strandline_topic].result(WAIT_S)
    said = f"administrative act principal=User:node host=127.0.0.1 api=CreateTopics on={strandline_topic}"
    assert said in broker.log_text


def test_users_tests_get_a_broker_with_rules() -> None:
    read_only = Acl(resource_type=2, resource_name="*", principal="User:ANONYMOUS", operation=3)
    with running_broker(acls=[read_only]) as broker:
        assert produced({"bootstrap.servers": broker.bootstrap}, "orders") == "TOPIC_AUTHORIZATION_FAILED"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert admin.list_topics(timeout=WAIT_S).brokers


@pytest.mark.filterwarnings(r"ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_kafka_python_s_admin_manages_rules() -> None:
    from kafka.admin import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        KafkaAdminClient,
        ResourcePattern,
        ResourcePatternFilter,
    )
    from kafka.admin import ResourceType as Kind

    everything = Acl(resource_type=4, resource_name="kafka-cluster", principal="User:ANONYMOUS", operation=2)
    with running_broker(acls=[everything]) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        rule = ACL(
            "User:bob", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ResourcePattern(Kind.TOPIC, "orders")
        )
        made = admin.create_acls([rule])
        assert made["succeeded"] == [rule]
        orders = ResourcePatternFilter(Kind.TOPIC, "orders", ACLResourcePatternType.MATCH)
        wanted = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, orders)
        found, _ = admin.describe_acls(wanted)
        assert found == [rule]
        ((_, removed, _),) = admin.delete_acls([wanted])
        assert removed == [rule]
        admin.close()


class JsonLoggingBroker(BrokerProcess):
    def _command(self, *arguments: str) -> list[str]:
        return super()._command(*arguments, "--log-format", "json")


def test_the_audit_log_is_json_if_that_is_set(tmp_path: Path) -> None:
    """Each denied and each administrative act is one object, whose fields have names."""
    anonymous = "User:ANONYMOUS"
    rules = [
        Acl(resource_type=2, resource_name="mine", principal=anonymous, operation=2),
        Acl(resource_type=4, resource_name="kafka-cluster", principal=anonymous, operation=2),
    ]
    broker = JsonLoggingBroker(tmp_path / "data", AUTHORIZED, acls=rules)
    broker.format()
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for created in admin.create_topics([NewTopic("mine", 1, 1), NewTopic("theirs", 1, 1)]).values():
            created.result(WAIT_S)
        assert produced({"bootstrap.servers": broker.bootstrap}, "theirs") == "TOPIC_AUTHORIZATION_FAILED"
    finally:
        broker.stop()
    lines = [json.loads(line) for line in broker.log_text.splitlines() if line.startswith("{")]
    acts = [line for line in lines if line["event"] == "administrative act"]
    assert {"principal": anonymous, "host": "127.0.0.1", "api": "CreateTopics"}.items() <= acts[0].items()
    assert acts[0]["on"] == "mine, theirs"
    denied = [line for line in lines if line["event"] == "denied"]
    assert denied
    for line in denied:
        assert line["principal"] == anonymous
        assert line["resource"] == "TOPIC:theirs"
        assert {"time_ms", "level", "node", "operation", "host", "api"} <= line.keys()
