"""Options of the Spark format: defaults, and what is refused with which words."""

from __future__ import annotations

import pytest

from strandline.base.ids import TopicPartition
from strandline.spark.options import EARLIEST, LATEST, Bound, OptionError, read_options, write_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def stream(**more: str) -> dict[str, str]:
    return {**SERVERS, "subscribe": "orders", **more}


def test_a_batch_reads_everything_and_a_stream_what_is_new_unless_told_otherwise() -> None:
    batch = read_options(stream(), is_stream=False)
    assert (batch.start, batch.end) == (Bound(offset=EARLIEST), Bound(offset=LATEST))
    assert read_options(stream(), is_stream=True).start == Bound(offset=LATEST)


def test_names_are_taken_in_any_case() -> None:
    found = read_options(stream(STARTINGOFFSETS="earliest", includeheaders="TRUE"), is_stream=True)
    assert found.start == Bound(offset=EARLIEST)
    assert found.include_headers


def test_a_time_for_all_wins_over_times_by_partition_and_those_over_offsets() -> None:
    times = '{"orders":{"0":5}}'
    both = stream(startingOffsets="earliest", startingOffsetsByTimestamp=times)
    expected = Bound(timestamps_ms={TopicPartition("orders", 0): 5})
    assert read_options(both, is_stream=False).start == expected
    assert read_options({**both, "startingTimestamp": "7"}, is_stream=False).start == Bound(timestamp_ms=7)


def test_settings_of_the_client_lose_their_prefix() -> None:
    found = read_options(stream(**{"kafka.isolation.level": "read_committed"}), is_stream=True)
    assert found.consumer == {"bootstrap.servers": "localhost:9092", "isolation.level": "read_committed"}


def test_delays_are_written_as_spark_writes_them() -> None:
    for text, seconds in (("15m", 900), ("30 s", 30), ("1500", 1.5), ("2h", 7200), ("20ms", 0.02)):
        found = read_options(stream(minOffsetsPerTrigger="5", maxTriggerDelay=text), is_stream=True)
        assert found.trigger_delay_max_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endingOffsets": "latest"}, "no meaning in a stream"),
        ({"maxOffsetsPerTrigger": "-1"}, "positive number"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, "less than minOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "like 15m"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"startingOffsetByTimestamp": "x"}, "did you mean startingOffsetsByTimestamp"),
        ({"startingOffsets": '{"orders":5}'}, "should be like"),
        ({"startingOffsets": "first"}, "no JSON"),
        ({"startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        ({"kafka.enable.auto.commit": "true"}, "commitGroup"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "error or latest"),
    ],
)
def test_options_that_cannot_stand_are_refused_with_the_fix(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        read_options(stream(**options), is_stream=True)


def test_options_of_others_are_left_alone() -> None:
    assert read_options(stream(checkpointLocation="/x", path="/y", whatever="z"), is_stream=True)


def test_writing_needs_servers_and_no_serializers() -> None:
    assert write_options({**SERVERS, "topic": "out"}).topic == "out"
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        write_options({"topic": "out"})
    with pytest.raises(OptionError, match="exactly_once"):
        write_options({**SERVERS, "kafka.transactional.id": "mine"})
