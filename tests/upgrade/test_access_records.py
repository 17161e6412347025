"""Rules, users, quotas and tokens of Apache Kafka, through 0.1.0 (which knew none of them), today's, and back.

0.1.0 kept them as bytes that it did not understand, and wrote them into snapshots: today they act.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.testing.clusters import free_ports
from strandline.testing.process import BrokerProcess
from strandline.wire.api.k29_describe_acls import DescribeAclsRequest
from strandline.wire.api.k30_create_acls import AclCreation, CreateAclsRequest
from strandline.wire.api.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.api.k38_create_delegation_token import CreateDelegationTokenRequest
from strandline.wire.api.k41_describe_delegation_token import DescribeDelegationTokenRequest
from strandline.wire.api.k48_describe_client_quotas import DescribeClientQuotasRequest
from strandline.wire.api.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from strandline.wire.api.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from strandline.wire.api.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from tests.compat.acl_brokers import ADMIN, logged_in, settings, wait_until
from tests.compat.wire import WireClient
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require
from tests.upgrade.old_revision import old_command

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]


def rule(name: str, operation: int = 3) -> AclCreation:
    return AclCreation(
        resource_type=2,
        resource_name=name,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=3,
    )


def write_everything(admin: WireClient) -> None:
    """Rules, of which one is removed again; a user; a quota that is changed twice; a token."""
    admin.call(CreateAclsRequest(creations=(rule("kept"), rule("kept", 4), rule("removed"))), 3)
    removed = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="removed",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    admin.call(DeleteAclsRequest(filters=(removed,)), 3)
    user = ScramCredentialUpsertion(
        name="carol", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"x" * 32
    )
    admin.call(AlterUserScramCredentialsRequest(deletions=(), upsertions=(user,)), 0)
    for rate in (1000.0, 2000.0, 1000.0):
        change = OpData(key="producer_byte_rate", value=rate, remove=False)
        entity = (EntityData(entity_type="user", entity_name="alice"),)
        admin.call(
            AlterClientQuotasRequest(entries=(EntryData(entity=entity, ops=(change,)),), validate_only=False),
            1,
        )
    token: Any = admin.call(CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1), 2)
    assert token.error_code == 0


def shown(admin: WireClient) -> dict[str, Any]:
    """Returns the rules, users, quotas and tokens that a broker shows."""
    everything = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    acls: Any = admin.call(everything, 3)
    quotas: Any = admin.call(DescribeClientQuotasRequest(components=(), strict=False), 1)
    users: Any = admin.call(DescribeUserScramCredentialsRequest(users=()), 0)
    tokens: Any = admin.call(DescribeDelegationTokenRequest(owners=None), 2)
    return {
        "acls": sorted((r.resource_name, a.principal, a.operation) for r in acls.resources for a in r.acls),
        "quotas": [(v.key, v.value) for entry in quotas.entries for v in entry.values],
        "users": [user.user for user in users.results],
        "tokens": [token.token_id for token in tokens.tokens],
    }


def test_everything_is_kept_and_acts(tmp_path: Path) -> None:
    sasl, plain, controller = free_ports(3)
    data = tmp_path / "data"
    own = settings(sasl, plain, controller)
    voters = {"controller.quorum.voters": f"1@127.0.0.1:{controller}", "log.dirs": str(data)}
    kafka = ApacheKafka(
        java=require(JAVA),
        jars=require(KAFKA_JARS),
        directory=tmp_path / "kafka",
        jvm_options=QUICK_START,
        settings=own | voters,
        broker_port=plain,
    )
    address = f"127.0.0.1:{sasl}"
    with kafka, logged_in(address, ADMIN) as admin:
        write_everything(admin)
        wait_until(lambda: len(shown(admin)["tokens"]) == 1)
        before = shown(admin)
    assert [name for name, _, _ in before["acls"]] == ["kept", "kept"]
    assert before["quotas"] == [("producer_byte_rate", 1000.0)]

    through_0_1_0(data, plain, controller, tmp_path / "old.properties")

    today = BrokerProcess(data)
    today.settings |= own | voters
    today.start()
    try:
        with logged_in(address, ADMIN) as admin:
            assert shown(admin) == before
            admin.call(CreateAclsRequest(creations=(rule("of-today"),)), 3)
            wait_until(lambda: len(shown(admin)["acls"]) == 3)
            of_today = shown(admin)
    finally:
        today.stop()

    with kafka, logged_in(address, ADMIN) as admin:
        assert shown(admin) == of_today


def through_0_1_0(data: Path, port: int, controller: int, config: Path) -> None:
    """Opens the directory with 0.1.0, which writes a snapshot of all that it has read."""
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\nlog.dirs={data}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "metadata.log.max.record.bytes.between.snapshots=1\n"
    )
    log = data / "__cluster_metadata-0"
    earlier = {path.name for path in log.glob("*.checkpoint")}
    with old_command("server", "--config", str(config)) as running:
        running.wait_for("ready")
        wait_until(lambda: {path.name for path in log.glob("*.checkpoint")} > earlier)
        assert running.stop() == 0
