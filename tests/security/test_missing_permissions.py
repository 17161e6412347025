"""A user who lacks an ACL is told which operation on which resource is missing, with the exit code for that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.cli.exit_codes import NOT_FOUND, NOT_PERMITTED, UNREACHABLE
from strandline.cli.main import main
from strandline.cli.parser import build_parser, parsers_by_name
from strandline.cli.permissions import OPERATIONS
from strandline.client import Acl
from strandline.client.sync import Producer
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess, running_broker

TOPIC = 2
WRITE, CREATE, DESCRIBE = 4, 5, 8

WAIT_S = 20.0


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    rules = [
        Acl(resource_type=TOPIC, resource_name="seen", principal="User:ANONYMOUS", operation=each)
        for each in (CREATE, DESCRIBE)
    ]
    rules += [
        Acl(resource_type=TOPIC, resource_name="written", principal="User:ANONYMOUS", operation=each)
        for each in (CREATE, WRITE)
    ]
    with running_broker(acls=rules) as started:
        assert main(["topics", "create", "seen", "written", "-b", started.bootstrap]) == 0
        with Producer(bootstrap_servers=started.bootstrap) as producer:
            producer.send("written", b"a record").result(WAIT_S)
        yield started


@pytest.fixture
def plan(tmp_path: Path) -> str:
    file = tmp_path / "plan.json"
    partitions = [{"topic": "hidden", "partition": 0, "replicas": [1]}]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(file)


HIDDEN = "this user needs DESCRIBE on the topic hidden, or there is no such topic"
HIDDEN_GROUP = "this user needs DESCRIBE on the group hidden, or there is no such group"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("topics describe hidden", HIDDEN),
        ("topics delete hidden --yes", HIDDEN),
        ("configs get --topic hidden", HIDDEN),
        ("consume hidden --exit", HIDDEN),
        ("producers --topic hidden:0", HIDDEN),
        ("reassign start PLAN --yes", HIDDEN),
        ("topics create other", "`topics create` needs CREATE on the topic"),
        ("topics alter seen -p 4", "`topics alter` needs ALTER for partitions"),
        ("topics delete seen --yes", "`topics delete` needs DELETE on the topic"),
        ("produce seen PLAN", "`produce` needs WRITE on the topic"),
        ("consume written --exit", "`consume` needs READ on the topic"),
        ("consume seen --exit --group g", "`consume` needs READ on the group"),
        ("configs get --topic seen", "`configs get` needs DESCRIBE_CONFIGS on the topic"),
        ("configs set retention.ms=5 --topic seen", "`configs set` needs ALTER_CONFIGS on the topic"),
        ("groups describe hidden", HIDDEN_GROUP),
        ("groups reset-offsets hidden --to-earliest --yes", HIDDEN_GROUP),
        ("groups delete hidden --yes", HIDDEN_GROUP),
        ("lag hidden", "`lag` needs DESCRIBE on the group"),
        ("reassign status", "`reassign status` needs DESCRIBE on the cluster"),
        ("cluster status", "`cluster status` needs DESCRIBE_CONFIGS on the topic"),
        ("acls add --topic t --principal User:bob --operation read", "an ACL for User:bob: "),
        ("quotas set --user bob producer_byte_rate=1", "quotas of user bob: "),
    ],
)
def test_a_command_names_the_operation_that_the_user_lacks(
    broker: BrokerProcess,
    plan: str,
    command: str,
    text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [plan if word == "PLAN" else word for word in command.split()]
    code = main([*words, "-b", broker.bootstrap])
    told = capsys.readouterr().err
    assert text in told, told
    assert "_AUTHORIZATION_FAILED" in told
    assert told.count("\n") == 1, told
    assert code == NOT_PERMITTED


def test_a_topic_that_the_user_could_see_is_still_not_found(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_broker() as open_to_all:
        assert main(["topics", "describe", "absent", "-b", open_to_all.bootstrap]) == NOT_FOUND
    assert "there is no topic absent" in capsys.readouterr().err


def test_every_command_with_operations_exists() -> None:
    assert set(OPERATIONS) <= set(parsers_by_name(build_parser()))


def test_a_client_without_tls_on_a_port_with_tls_is_told_what_to_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_broker(security=DevelopmentSecurity(tmp_path / "security", "SASL_SSL")) as broker:
        assert main(["topics", "list", "-b", broker.bootstrap, "--timeout", "5"]) == UNREACHABLE
    assert "Then set security.protocol to SSL or SASL_SSL" in capsys.readouterr().err
