from __future__ import annotations

import pytest

from strandline.config import InvalidConfig
from strandline.config.definition import ConfigValue
from strandline.config.java import parse_double, parse_integer, print_double, split
from strandline.config.keys.broker import BROKER_KEYS
from strandline.config.keys.topic import TOPIC_KEYS
from strandline.config.values import parse, render


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("preallocate", " TRUE\n", True),
        ("preallocate", "False", False),
        ("retention.ms", " -1 ", -1),
        ("retention.ms", "+0012", 12),
        ("retention.ms", "9223372036854775807", 2**63 - 1),
        ("min.cleanable.dirty.ratio", "1", 1.0),
        ("min.cleanable.dirty.ratio", ".25d", 0.25),
        ("cleanup.policy", "", ()),
        ("cleanup.policy", " compact ,delete,compact ", ("compact", "delete")),
        ("compression.type", " zstd ", "zstd"),
        ("leader.replication.throttled.replicas", "0:1,2:3", ("0:1", "2:3")),
        ("leader.replication.throttled.replicas", "*", ("*",)),
    ],
)
def test_texts_become_typed_values(name: str, text: str, value: ConfigValue) -> None:
    parsed = parse(TOPIC_KEYS[name], text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("retention.ms", "soon", "Not a number of type LONG"),
        ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
        ("retention.ms", "1_000", "Not a number of type LONG"),
        ("segment.bytes", "2147483648", "Not a number of type INT"),
        ("segment.bytes", "", "Not a number of type INT"),
        ("segment.bytes", "1000", "Value must be at least 1048576"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("min.cleanable.dirty.ratio", "1_0", "Not a number of type DOUBLE"),
        ("message.timestamp.type", "createtime", "String must be one of: CreateTime, LogAppendTime"),
    ],
)
def test_a_bad_value_is_refused_with_key_value_and_what_is_allowed(name: str, text: str, rule: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse(TOPIC_KEYS[name], text)
    assert refused.value.message == f"Invalid value {text} for configuration {name}: {rule}"
    assert (refused.value.key, refused.value.value) == (name, text)
    assert f"allowed: {TOPIC_KEYS[name].allowed()}" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "listeners",
            "",
            "Configuration 'listeners' must not be empty. Valid values include: any non-empty value",
        ),
        ("listeners", "a,,b", "Configuration 'listeners' values must not be empty."),
        ("log.cleanup.policy", "shred", "Invalid value shred for configuration log.cleanup.policy: "),
    ],
)
def test_a_bad_list_is_refused(name: str, text: str, sentence: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse(BROKER_KEYS[name], text)
    assert refused.value.message.startswith(sentence)


def test_words_in_any_case_keep_the_case_they_were_given_in() -> None:
    assert parse(BROKER_KEYS["group.consumer.migration.policy"], "Upgrade") == "Upgrade"


def test_null_is_allowed_only_where_the_key_allows_it() -> None:
    assert parse(BROKER_KEYS["advertised.listeners"], None) is None
    assert parse(BROKER_KEYS["log.retention.ms"], None) is None
    with pytest.raises(InvalidConfig, match="must be non-null"):
        parse(BROKER_KEYS["num.partitions"], None)


def test_the_refusal_of_a_list_still_names_key_and_value() -> None:
    refused = InvalidConfig("some.key", "x,,y", "values must not be empty", "list")
    assert str(refused) == "some.key: values must not be empty (given: x,,y; allowed: list)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        ((), ""),
        (("a", "b"), "a,b"),
        ("text", "text"),
        (0.5, "0.5"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-123456789.0, "-1.23456789E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (0.0, "0.0"),
    ],
)
def test_values_are_shown_as_java_prints_them(value: ConfigValue, text: str | None) -> None:
    assert render(value) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x1p3", 8.0), ("1e3", 1000.0), ("2.5F", 2.5), ("-Infinity", float("-inf")), (" 1 ", 1.0), ("5.", 5.0)],
)
def test_doubles_are_read_as_java_does(text: str, number: float) -> None:
    assert parse_double(text) == number


@pytest.mark.parametrize("text", ["", "inf", "nan", "1__0", "0x10", "d", "1e", "--1", "1 0"])
def test_a_text_that_only_python_takes_for_a_double_is_none(text: str) -> None:
    assert parse_double(text) is None


def test_an_integer_may_have_any_number_of_leading_zeros_but_must_fit() -> None:
    assert parse_integer("-" + "0" * 10_000 + "7", -10, 10) == -7
    assert parse_integer("9" * 10_000, -10, 10) is None
    assert parse_integer("-", -10, 10) is None


def test_nan_and_large_numbers_print_as_in_java() -> None:
    assert print_double(float("nan")) == "NaN"
    assert print_double(1e23) == "1.0E23"
    assert print_double(123456789012345680.0) == "1.2345678901234568E17"


def test_splitting_drops_empty_entries_at_the_end_only() -> None:
    assert split("a,,b,,") == ["a", "", "b"]
    assert split("") == [""]
    assert split(",") == []
