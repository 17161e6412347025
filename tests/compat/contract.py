"""The tests that every client library must pass. Each library's test file inherits them.

A claim that only one library can make is in that library's file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from tests.compat.clients.interface import ErrorCode, KafkaClient, Refused, eventually
from tests.compat.records import BASE_TIMESTAMP_MS, CODECS, EVERY_SHAPE, Sample, numbered
from tests.compat.server import CreateTopic, Server


class RecordContract:
    """Records written are the records read."""

    @pytest.mark.parametrize("codec", CODECS)
    def test_every_shape_of_record_survives_every_codec(
        self, client: KafkaClient, create: CreateTopic, topic: str, codec: str
    ) -> None:
        create(topic)
        samples = [sample for sample in EVERY_SHAPE if client.can_write(sample)]
        client.write(topic, samples, codec=codec)
        assert read_samples(client, topic, count=len(samples)) == samples

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    def test_records_arrive_with_every_kind_of_acknowledgement(
        self, client: KafkaClient, create: CreateTopic, topic: str, acks: str
    ) -> None:
        create(topic)
        samples = list(numbered(50))
        client.write(topic, samples, acks=acks)
        assert read_samples(client, topic, count=50) == samples

    @pytest.mark.parametrize("codec", CODECS)
    def test_idempotent_producer_writes_each_record_once_and_in_order(
        self, client: KafkaClient, create: CreateTopic, topic: str, codec: str
    ) -> None:
        create(topic)
        samples = list(numbered(500))
        written = client.write(topic, samples, idempotent=True, codec=codec)
        assert [each.offset for each in written] == list(range(500))
        assert read_samples(client, topic, count=500) == samples
        assert client.end_offsets(topic, [0]) == {0: 500}

    def test_record_of_nearly_a_megabyte_survives(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        sample = Sample(key=b"large", value=bytes(range(250)) * 4000, timestamp_ms=BASE_TIMESTAMP_MS)
        client.write(topic, [sample])
        assert read_samples(client, topic, count=1) == [sample]

    def test_large_records_fill_several_fetches(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        samples = [
            Sample(value=bytes([index]) * 900_000, timestamp_ms=BASE_TIMESTAMP_MS + index)
            for index in range(4)
        ]
        client.write(topic, samples)
        assert read_samples(client, topic, count=4) == samples

    def test_order_is_kept_within_each_of_several_partitions(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, partitions=4)
        samples = numbered(2000)
        written = client.write(topic, samples, partition=None)
        expected: dict[int, list[Sample]] = {partition: [] for partition in range(4)}
        for sample, place in zip(samples, written, strict=True):
            assert place.offset == len(expected[place.partition])
            expected[place.partition].append(sample)
        assert sum(1 for each in expected.values() if each) > 1
        for partition, in_order in expected.items():
            assert read_samples(client, topic, partition=partition, count=len(in_order)) == in_order

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    def test_reading_starts_at_the_requested_offset_even_within_a_batch(
        self, client: KafkaClient, create: CreateTopic, topic: str, codec: str
    ) -> None:
        create(topic)
        samples = numbered(100)
        client.write(topic, samples, codec=codec)
        received = client.read(topic, offset=37, count=63)
        assert [each.offset for each in received] == list(range(37, 100))
        assert tuple(each.sample for each in received) == samples[37:]

    def test_records_of_a_topic_with_log_append_time_carry_the_time_of_the_broker(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, configs={"message.timestamp.type": "LogAppendTime"})
        before_ms = int(time.time() * 1000)
        client.write(topic, numbered(10))
        after_ms = int(time.time() * 1000)
        times_ms = [each.sample.timestamp_ms for each in client.read(topic, count=10)]
        assert all(time_ms is not None and before_ms <= time_ms <= after_ms for time_ms in times_ms)

    @pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
    def test_records_survive_recompression_by_the_broker(
        self, client: KafkaClient, create: CreateTopic, topic: str, codec: str
    ) -> None:
        create(topic, configs={"compression.type": codec})
        samples = [sample for sample in EVERY_SHAPE if client.can_write(sample)]
        client.write(topic, samples, codec="gzip" if codec == "zstd" else "zstd")
        assert read_samples(client, topic, count=len(samples)) == samples

    def test_record_larger_than_the_topic_allows_is_refused(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, configs={"max.message.bytes": "10000"})
        with pytest.raises(Refused) as refused:
            client.write(topic, [Sample(value=b"x" * 20_000)])
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        client.write(topic, [Sample(value=b"x" * 5_000)])
        assert client.end_offsets(topic, [0]) == {0: 1}

    def test_writing_to_an_unknown_topic_creates_it(self, client: KafkaClient, topic: str) -> None:
        client.write(topic, numbered(3))
        assert len(client.describe_topic(topic)) == 1
        assert read_samples(client, topic, count=3) == list(numbered(3))


class OffsetContract:
    """Offsets by name and by time."""

    def test_offsets_of_an_empty_partition_are_both_zero(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, partitions=2)
        assert client.beginning_offsets(topic, [0, 1]) == {0: 0, 1: 0}
        assert client.end_offsets(topic, [0, 1]) == {0: 0, 1: 0}

    def test_end_offset_is_one_past_the_last_record(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, partitions=2)
        client.write(topic, numbered(7), partition=1)
        assert client.beginning_offsets(topic, [0, 1]) == {0: 0, 1: 0}
        assert client.end_offsets(topic, [0, 1]) == {0: 0, 1: 7}

    @pytest.mark.parametrize("codec", ["none", "lz4"])
    def test_offset_by_time_is_that_of_the_first_record_not_older(
        self, client: KafkaClient, create: CreateTopic, topic: str, codec: str
    ) -> None:
        create(topic, partitions=3)
        for partition in range(3):
            client.write(topic, numbered(100), partition=partition, codec=codec)
        asked = {0: BASE_TIMESTAMP_MS - 5, 1: BASE_TIMESTAMP_MS + 50, 2: BASE_TIMESTAMP_MS + 100}
        assert client.offsets_for_times(topic, asked) == {0: 0, 1: 50, 2: None}

    def test_reading_beyond_the_end_is_out_of_range(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        client.write(topic, numbered(3))
        with pytest.raises(Refused) as refused:
            client.read(topic, offset=1000, count=1)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_deleted_records_are_gone_and_the_rest_stay(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, partitions=2)
        client.write(topic, numbered(20), partition=0)
        client.write(topic, numbered(20), partition=1)
        assert client.delete_records(topic, {0: 5, 1: -1}) == {0: 5, 1: 20}
        assert client.beginning_offsets(topic, [0, 1]) == {0: 5, 1: 20}
        assert client.end_offsets(topic, [0, 1]) == {0: 20, 1: 20}
        assert read_samples(client, topic, offset=5, count=15) == list(numbered(20)[5:])
        with pytest.raises(Refused) as refused:
            client.read(topic, offset=2, count=1)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_deleting_records_beyond_the_end_is_out_of_range(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        client.write(topic, numbered(3))
        with pytest.raises(Refused) as refused:
            client.delete_records(topic, {0: 4})
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


class AdminContract:
    """Topics, configs and the cluster."""

    def test_created_topic_is_listed_and_described_and_gone_after_deletion(
        self, client: KafkaClient, topic: str
    ) -> None:
        client.create_topic(topic, partitions=3)
        eventually(client.list_topics, lambda topics: topic in topics)
        described = eventually(lambda: client.describe_topic(topic), lambda found: len(found) == 3)
        broker = client.describe_cluster().controller
        for partition in described.values():
            assert (partition.leader, partition.replicas, partition.in_sync) == (broker, (broker,), (broker,))
        client.delete_topic(topic)
        eventually(client.list_topics, lambda topics: topic not in topics)

    def test_topic_that_exists_cannot_be_created_again(self, client: KafkaClient, topic: str) -> None:
        client.create_topic(topic)
        with pytest.raises(Refused) as refused:
            client.create_topic(topic)
        assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS

    @pytest.mark.parametrize("name", ["no spaces", "no/slashes", "..", "x" * 250, "ümlaut"])
    def test_topic_with_an_invalid_name_is_refused(self, client: KafkaClient, name: str) -> None:
        with pytest.raises(Refused) as refused:
            client.create_topic(name)
        assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_name_of_249_characters_is_the_longest(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        longest = topic.ljust(249, "x")
        create(longest)
        client.write(longest, numbered(1))
        assert read_samples(client, longest, count=1) == list(numbered(1))

    def test_topic_with_more_replicas_than_brokers_is_refused(self, client: KafkaClient, topic: str) -> None:
        with pytest.raises(Refused) as refused:
            client.create_topic(topic, replication_factor=2)
        assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR

    @pytest.mark.parametrize(
        ("config", "value"),
        [("retention.ms", "soon"), ("cleanup.policy", "burn"), ("segment.bytes", "1"), ("no.such.key", "1")],
    )
    def test_topic_with_an_invalid_config_is_refused(
        self, client: KafkaClient, topic: str, config: str, value: str
    ) -> None:
        with pytest.raises(Refused) as refused:
            client.create_topic(topic, configs={config: value})
        assert refused.value.code == ErrorCode.INVALID_CONFIG
        assert topic not in client.list_topics()

    def test_deleting_an_unknown_topic_is_refused(self, client: KafkaClient, topic: str) -> None:
        with pytest.raises(Refused) as refused:
            client.delete_topic(topic)
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_partitions_can_be_added_and_written(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, partitions=2)
        client.create_partitions(topic, total=5)
        eventually(lambda: len(client.describe_topic(topic)), lambda count: count == 5)
        client.write(topic, numbered(3), partition=4)
        assert client.end_offsets(topic, [4]) == {4: 3}

    @pytest.mark.parametrize("total", [1, 2])
    def test_partition_count_only_grows(self, client: KafkaClient, topic: str, total: int) -> None:
        client.create_topic(topic, partitions=2)
        with pytest.raises(Refused) as refused:
            client.create_partitions(topic, total=total)
        assert refused.value.code == ErrorCode.INVALID_PARTITIONS

    def test_configs_of_a_topic_are_defaults_until_altered(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic, configs={"segment.bytes": "2000000"})
        configs = eventually(
            lambda: client.describe_topic_configs(topic), lambda found: found["segment.bytes"] == "2000000"
        )
        assert configs["retention.ms"] == "604800000"
        assert configs["cleanup.policy"] == "delete"
        assert configs["compression.type"] == "producer"
        client.alter_topic_configs(topic, {"retention.ms": "86400000"})
        eventually(
            lambda: client.describe_topic_configs(topic), lambda found: found["retention.ms"] == "86400000"
        )

    def test_altering_a_topic_to_an_invalid_config_is_refused(self, client: KafkaClient, topic: str) -> None:
        client.create_topic(topic)
        eventually(client.list_topics, lambda topics: topic in topics)
        with pytest.raises(Refused) as refused:
            client.alter_topic_configs(topic, {"retention.ms": "soon"})
        assert refused.value.code == ErrorCode.INVALID_CONFIG

    def test_altered_size_limit_holds_for_the_next_record(
        self, client: KafkaClient, create: CreateTopic, topic: str
    ) -> None:
        create(topic)
        client.write(topic, [Sample(value=b"x" * 20_000)])
        client.alter_topic_configs(topic, {"max.message.bytes": "10000"})
        eventually(
            lambda: client.describe_topic_configs(topic), lambda found: found["max.message.bytes"] == "10000"
        )
        with pytest.raises(Refused) as refused:
            client.write(topic, [Sample(value=b"x" * 20_000)])
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE

    def test_configs_of_a_broker_can_be_described(self, client: KafkaClient) -> None:
        configs = client.describe_broker_configs(client.describe_cluster().controller)
        assert configs["log.segment.bytes"] == "1073741824"
        assert configs["message.max.bytes"] == "1048588"
        assert configs["num.partitions"] == "1"

    def test_cluster_has_an_id_and_one_broker_at_the_address_of_the_server(
        self, client: KafkaClient, server: Server
    ) -> None:
        cluster = client.describe_cluster()
        assert len(cluster.cluster_id) == 22
        assert cluster.brokers == {cluster.controller: server.bootstrap}


class ClientContract(RecordContract, OffsetContract, AdminContract):
    """Everything. A test class inherits this and offers a fixture `client`."""


def read_samples(
    client: KafkaClient, topic: str, *, partition: int = 0, offset: int = 0, count: int
) -> Sequence[Sample]:
    """Read, check that offsets count up without gaps, and return the records."""
    received = client.read(topic, partition=partition, offset=offset, count=count)
    assert [each.offset for each in received] == list(range(offset, offset + count))
    return [each.sample for each in received]
