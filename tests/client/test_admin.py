"""The admin client's calls do what they say, on both brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Admin, Producer
from strandline.client.admin.access import Acl, AclFilter, QuotaEntity, ScramCredential
from strandline.client.admin.admin import (
    CommittedOffset,
    ConfigChange,
    ConfigResource,
    NewTopic,
    PartialFailureError,
)
from strandline.client.admin.configs import ConfigSource, Operation, ResourceType
from strandline.client.admin.topics import EARLIEST, LATEST, MAX_TIMESTAMP
from strandline.client.errors import (
    ErrorCode,
    GroupError,
    KafkaError,
    TopicExistsError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from strandline.wire.api.k51_alter_user_scram_credentials import ScramCredentialUpsertion
from tests.client.reading import create, run
from tests.record_times import HOUR_MS, recent_ms

T = TypeVar("T")


async def eventually(ask: Callable[[], Awaitable[T]], expected: T) -> None:
    """Brokers respond to Metadata from images that follow the controller's a moment later."""
    for _ in range(3000):  # a minute
        found = await ask()
        if found == expected:
            return
        await asyncio.sleep(0.02)
    assert found == expected


async def listed(admin: Admin, topic: str) -> bool:
    return topic in await admin.list_topics()


async def described(admin: Admin, topic: str) -> tuple[bytes, int]:
    info = (await admin.describe_topics([topic]))[topic]
    return info.topic_id, len(info.partitions)


def test_topics_are_created_listed_described_grown_and_deleted(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            made = await admin.create_topic(topic, partitions=2, configs={"retention.ms": "60000"})
            assert (made.partitions, made.replication_factor) == (2, 1)
            with pytest.raises(TopicExistsError):
                await admin.create_topic(topic)
            await eventually(lambda: listed(admin, topic), True)
            await admin.create_partitions({topic: 4})
            await eventually(lambda: described(admin, topic), (made.topic_id, 4))
            await admin.delete_topics([topic])
            await eventually(lambda: listed(admin, topic), False)
            with pytest.raises(UnknownTopicError):
                await admin.describe_topics([topic])
            with pytest.raises(UnknownTopicError):
                await admin.delete_topics([topic])

    run(main())


def test_when_some_of_several_items_fail_both_outcomes_are_told(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            with pytest.raises(PartialFailureError) as caught:
                await admin.create_topics([NewTopic(name=topic, partitions=1), NewTopic(name="not/allowed")])
            assert list(caught.value.results) == [topic]
            assert caught.value.errors["not/allowed"].code == ErrorCode.INVALID_TOPIC_EXCEPTION
            await admin.create_topics([NewTopic(name=f"{topic}-2", partitions=1)], validate_only=True)
            assert f"{topic}-2" not in await admin.list_topics()

    run(main())


def test_settings_are_described_and_changed_one_by_one(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        resource = ConfigResource.topic(topic)
        async with Admin(bootstrap_servers=bootstrap) as admin:
            await create(bootstrap, topic, retention_ms="60000")
            await admin.alter_configs({resource: [ConfigChange(name="max.message.bytes", value="12345")]})
            found = (await admin.describe_configs([resource]))[resource]
            assert (found["max.message.bytes"].value, found["retention.ms"].value) == ("12345", "60000")
            await admin.alter_configs(
                {resource: [ConfigChange(name="retention.ms", operation=Operation.DELETE)]}
            )
            found = (await admin.describe_configs([resource], names=["retention.ms"], include_synonyms=True))[
                resource
            ]
            assert list(found) == ["retention.ms"]
            assert found["retention.ms"].is_default
            with pytest.raises(KafkaError) as caught:
                await admin.alter_configs({resource: [ConfigChange(name="retention.ms", value="soon")]})
            assert caught.value.code == ErrorCode.INVALID_CONFIG
            node = (await admin.describe_cluster()).nodes[0].node_id
            broker = ConfigResource.broker(node)
            assert "log.dirs" in (await admin.describe_configs([broker]))[broker]

    run(main())


def test_a_group_has_settings_of_its_own(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        resource, key = ConfigResource.group(f"{topic}-group"), "consumer.session.timeout.ms"
        async with Admin(bootstrap_servers=bootstrap) as admin:
            await admin.alter_configs({resource: [ConfigChange(name=key, value="50000")]})
            async with asyncio.timeout(60):  # brokers hear of it a little later
                while (found := (await admin.describe_configs([resource]))[resource][key]).value != "50000":
                    await asyncio.sleep(0.05)
            assert found.source == ConfigSource.GROUP
            assert resource in await admin.list_config_resources([ResourceType.GROUP])
            with pytest.raises(KafkaError) as caught:
                await admin.alter_configs({resource: [ConfigChange(name=key, value="1")]})
            assert caught.value.code == ErrorCode.INVALID_CONFIG
            assert "group.consumer.min.session.timeout.ms" in str(caught.value)

    run(main())


def test_offsets_are_found_by_time_and_records_are_deleted(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        where = TopicPartition(topic, 0)
        first_ms = recent_ms()
        await create(bootstrap, topic)
        async with (
            Admin(bootstrap_servers=bootstrap) as admin,
            Producer(bootstrap_servers=bootstrap) as producer,
        ):
            for number in range(10):
                await producer.send_and_wait(topic, b"x", timestamp_ms=first_ms + number * 1000)

            async def offset(at: int) -> int:
                return (await admin.list_offsets({where: at}))[where].offset

            assert [await offset(at) for at in (EARLIEST, LATEST, MAX_TIMESTAMP)] == [0, 10, 9]
            assert await offset(first_ms + 3500) == 4
            assert await offset(first_ms + HOUR_MS) == -1
            assert await admin.delete_records({where: 7}) == {where: 7}
            assert await offset(EARLIEST) == 7

    run(main())


def test_a_groups_offsets_are_altered_listed_and_deleted_and_the_group_too(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        group, one, two = f"group-{topic}", TopicPartition(topic, 0), TopicPartition(topic, 1)
        await create(bootstrap, topic, partitions=2)
        async with Admin(bootstrap_servers=bootstrap) as admin:
            await admin.alter_group_offsets(group, {one: 5, two: CommittedOffset(offset=7, metadata="note")})
            found = await admin.list_group_offsets(group)
            assert {where: (each.offset, each.metadata) for where, each in found.items()} == {
                one: (5, ""),
                two: (7, "note"),
            }
            assert group in [each.group_id for each in await admin.list_groups()]
            described = (await admin.describe_groups([group]))[group]
            assert (described.state, described.members) == ("Empty", ())
            await admin.delete_group_offsets(group, [one])
            assert list(await admin.list_group_offsets(group)) == [two]
            await admin.delete_groups([group])
            for call in (admin.describe_groups([group]), admin.delete_groups([group])):
                with pytest.raises(GroupError) as caught:
                    await call
                assert caught.value.code == ErrorCode.GROUP_ID_NOT_FOUND

    run(main())


def test_the_cluster_its_features_log_directories_and_producers_are_described(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        where = TopicPartition(topic, 0)
        await create(bootstrap, topic)
        async with (
            Admin(bootstrap_servers=bootstrap) as admin,
            Producer(bootstrap_servers=bootstrap) as producer,
        ):
            await producer.send_and_wait(topic, b"x" * 1000)
            cluster = await admin.describe_cluster()
            assert len(cluster.nodes) == 1
            assert cluster.cluster_id
            assert "metadata.version" in (await admin.describe_features()).finalized
            directories = (await admin.describe_log_dirs())[cluster.nodes[0].node_id]
            assert max(each.replicas.get(where, 0) for each in directories) > 1000
            (active,) = (await admin.describe_producers([where]))[where]
            assert (active.epoch, active.last_sequence) == (0, 0)

    run(main())


def test_a_request_that_the_broker_does_not_know_is_an_error_at_once(bootstrap: str, topic: str) -> None:
    """Strandline lacks some of these so far; Apache Kafka has them all."""

    async def main() -> None:
        await create(bootstrap, topic)
        where = TopicPartition(topic, 0)
        async with Admin(bootstrap_servers=bootstrap) as admin:
            calls = {
                "elect": admin.elect_leaders([where]),
                "reassignments": admin.list_reassignments(),
                "quorum": admin.describe_quorum(),
                "transactions": admin.list_transactions(),
                "quotas": admin.describe_client_quotas(),
                "scram": admin.describe_scram_credentials(),
            }
            for name, call in calls.items():
                try:
                    found = await asyncio.wait_for(call, 10)
                except UnsupportedVersionError:
                    continue
                if name == "elect":
                    assert isinstance(found, dict)
                    assert [error.name for error in found.values() if error] in ([], ["ELECTION_NOT_NEEDED"])

    run(main())


def test_rules_quotas_and_credentials_are_made_described_and_removed(apache_bootstrap: str) -> None:
    rule = Acl(resource_type=2, resource_name="orders", principal="User:alice", operation=3)
    of_alice = AclFilter(principal="User:alice")
    user: QuotaEntity = (("user", "alice"),)
    secret = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"x" * 32
    )

    async def main() -> None:
        async with Admin(bootstrap_servers=apache_bootstrap) as admin:
            await admin.create_acls([rule])
            await eventually(lambda: admin.describe_acls(of_alice), [rule])
            assert await admin.delete_acls([of_alice]) == [rule]
            await eventually(lambda: admin.describe_acls(of_alice), [])
            with pytest.raises(KafkaError):
                await admin.create_acls([replace(rule, operation=99)])

            await admin.alter_client_quotas({user: {"producer_byte_rate": 1000.0}})
            await eventually(
                lambda: admin.describe_client_quotas(["user"]), {user: {"producer_byte_rate": 1000.0}}
            )
            await admin.alter_client_quotas({user: {"producer_byte_rate": None}})
            await eventually(lambda: admin.describe_client_quotas(["user"]), {})

            await admin.alter_scram_credentials(upsertions=[secret])
            await eventually(admin.describe_scram_credentials, {"alice": (ScramCredential(1, 4096),)})
            await admin.alter_scram_credentials(deletions=[("alice", 1)])
            await eventually(admin.describe_scram_credentials, {})
            with pytest.raises(KafkaError) as refused:
                await admin.alter_scram_credentials(deletions=[("alice", 1)])
            assert refused.value.code == ErrorCode.RESOURCE_NOT_FOUND

    run(main())


def test_partitions_are_moved_and_what_does_not_move_cannot_be_called_back(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        where = TopicPartition(topic, 0)
        async with Admin(bootstrap_servers=bootstrap) as admin:
            (node,) = (await admin.describe_cluster()).nodes
            await admin.reassign_partitions({where: [node.node_id]})
            await eventually(lambda: admin.list_reassignments([where]), {})
            for refused, code in (
                ([node.node_id + 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
                (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
            ):
                with pytest.raises(KafkaError) as caught:
                    await admin.reassign_partitions({where: refused})
                assert caught.value.code == code

    run(main())
