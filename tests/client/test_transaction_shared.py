"""Several producers write inside one transaction: all of it is seen, or nothing."""

from __future__ import annotations

import pickle

import pytest

from strandline.client.errors import IllegalStateError, KafkaError
from strandline.client.sync import Admin, Consumer, TopicPartition, TransactionMember, TransactionOwner


def committed(bootstrap: str, topic: str) -> list[bytes]:
    """Returns the records that a reader of committed data sees in both partitions, up to the end of the log."""
    found: list[bytes] = []
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    with Consumer(settings, bootstrap_servers=bootstrap) as consumer:
        places = [TopicPartition(topic, number) for number in range(2)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(where) < ends[where] for where in places):
            found += [record.value for record in consumer.poll(1)]
    return sorted(found)


def owner_of(bootstrap: str, name: str) -> TransactionOwner:
    owner = TransactionOwner(bootstrap_servers=bootstrap, transactional_id=name)
    owner.init_transactions()
    owner.begin_transaction()
    return owner


@pytest.fixture
def made(bootstrap: str, topic: str) -> str:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    return topic


def test_members_of_one_transaction_are_seen_together_and_sequences_begin_again(
    bootstrap: str, made: str
) -> None:
    for batch in range(3):
        with owner_of(bootstrap, made) as owner:
            ticket = pickle.loads(pickle.dumps(owner.ticket))
            for number in range(2):
                with TransactionMember(bootstrap_servers=bootstrap, ticket=ticket) as member:
                    for each in range(10):
                        member.send(made, b"%d-%d-%d" % (batch, number, each), None, number)
                    member.flush()
            assert not [value for value in committed(bootstrap, made) if value.startswith(b"%d" % batch)]
            owner.commit_transaction()
    assert len(committed(bootstrap, made)) == 60


def test_a_member_of_a_transaction_that_is_over_is_refused(bootstrap: str, made: str) -> None:
    with owner_of(bootstrap, made) as owner:
        ticket = owner.ticket
        with TransactionMember(bootstrap_servers=bootstrap, ticket=ticket) as member:
            member.send_and_wait(made, b"aborted", partition=0)
            with owner_of(bootstrap, made) as successor:
                for partition in (0, 1):  # one that the transaction knew, and one that it did not
                    with pytest.raises(KafkaError):
                        member.send_and_wait(made, b"too late", partition=partition)
                successor.send_and_wait(made, b"good", partition=0)
                successor.commit_transaction()
    assert committed(bootstrap, made) == [b"good"]


def test_only_the_owner_ends_a_transaction(bootstrap: str, made: str) -> None:
    with (
        owner_of(bootstrap, made) as owner,
        TransactionMember(bootstrap_servers=bootstrap, ticket=owner.ticket) as member,
    ):
        with pytest.raises(IllegalStateError, match="owner"):
            member.commit_transaction()
        member.send_and_wait(made, b"aborted", partition=0)
        owner.abort_transaction()
        assert committed(bootstrap, made) == []
