"""Errors, ids and names that everything shares."""

from __future__ import annotations

import uuid

import pytest

from strandline.base.errors import MESSAGE_LENGTH_MAX, ErrorCode, KafkaError, error_name, is_retriable
from strandline.base.ids import TopicPartition, new_uuid, parse_uuid, uuid_text
from strandline.base.topics import colliding_name, invalid_topic_name


def test_an_error_knows_its_code_its_sentence_and_whether_a_retry_helps() -> None:
    error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Two are needed.")
    assert (error.code, error.message, error.retriable) == (19, "Two are needed.", True)
    assert str(error) == "NOT_ENOUGH_REPLICAS: Two are needed."
    assert not KafkaError(ErrorCode.INVALID_CONFIG).retriable


def test_an_error_without_a_sentence_says_its_name() -> None:
    assert KafkaError(ErrorCode.UNKNOWN_TOPIC_ID).message == "Unknown topic id"


def test_an_unknown_code_keeps_its_number() -> None:
    assert error_name(9999) == "ERROR_9999"
    assert not is_retriable(9999)
    assert KafkaError(9999).code == 9999


def test_a_sentence_that_quotes_a_client_at_length_is_cut() -> None:
    message = KafkaError(ErrorCode.INVALID_REQUEST, "x" * 100_000).message
    assert (len(message), message[-1]) == (MESSAGE_LENGTH_MAX, "…")


def test_uuids_are_written_as_kafka_writes_them() -> None:
    raw = bytes(range(16))
    assert uuid_text(raw) == "AAECAwQFBgcICQoLDA0ODw"
    assert parse_uuid("AAECAwQFBgcICQoLDA0ODw") == raw
    assert parse_uuid("AAECAwQFBgcICQoLDA0ODw==") == raw


def test_new_uuids_are_of_version_4_and_no_tool_takes_one_for_an_option() -> None:
    drawn = iter((bytes([0b111110_00]) * 16, bytes([0b111111_00]) * 16))
    raw = new_uuid(lambda _: next(drawn))
    assert uuid_text(raw).startswith("_"), "the first would have begun with a dash"
    assert uuid.UUID(bytes=raw).version == 4


@pytest.mark.parametrize(
    "text", ["", "AAEC", "AAECAwQFBgcICQoLDA0ODwAA", "x" * 1000, "AAECAwQFBgcICQoLDA0OD"]
)
def test_text_that_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"UUID|base64|padding"):
        parse_uuid(text)


def test_a_partition_is_named_as_its_directory_is() -> None:
    assert str(TopicPartition("a-b", 3)) == "a-b-3"


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    assert colliding_name("a_b", ["x", "a.b"]) == "a.b"
    assert colliding_name("ab", ["a.b"]) is None
    assert colliding_name("a-b", ["a.b"]) is None


def test_a_name_is_taken_or_the_reason_is_given() -> None:
    assert invalid_topic_name("orders.v1") is None
    assert "250 characters" in (invalid_topic_name("x" * 250) or "")
