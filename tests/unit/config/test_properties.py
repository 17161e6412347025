r"""tests/compat reads the same texts with Java."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.config import MalformedProperties, Property, parse_properties, render_properties


def pairs(text: str) -> list[tuple[str, str]]:
    return [(each.key, each.value) for each in parse_properties(text)]


@pytest.mark.parametrize("line", ["a=b", "a:b", "a b", "  a  =  b", "a\t:\tb", "a   b"])
def test_equals_sign_colon_and_blank_part_key_from_value(line: str) -> None:
    assert pairs(line) == [("a", "b")]


def test_only_the_first_separator_counts() -> None:
    assert pairs("a=b=c:d e") == [("a", "b=c:d e")]


def test_blanks_at_the_end_of_a_value_belong_to_it() -> None:
    assert pairs("a=b  \n") == [("a", "b  ")]


def test_comments_and_blank_lines_say_nothing() -> None:
    assert pairs("# a=1\n\n  ! b=2\n \t \nc=3") == [("c", "3")]


def test_a_hash_sign_inside_a_value_is_no_comment() -> None:
    assert pairs("a=b # c") == [("a", "b # c")]


def test_an_odd_backslash_at_the_end_continues_the_line_without_its_indentation() -> None:
    assert pairs("a=1,\\\n    2,\\\n\t3\nb=x") == [("a", "1,2,3"), ("b", "x")]


def test_an_even_number_of_backslashes_at_the_end_is_part_of_the_value() -> None:
    assert pairs("a=x\\\\\nb=y") == [("a", "x\\"), ("b", "y")]


def test_a_comment_is_never_continued_and_never_continues() -> None:
    assert pairs("# a \\\nb=1\nc=1\\\n# 2") == [("b", "1"), ("c", "1# 2")]


def test_escapes_mean_what_they_do_in_java() -> None:
    assert pairs("a=\\t\\n\\r\\f\\q\\\\\\u00e9") == [("a", "\t\n\r\fq\\é")]


def test_two_surrogates_are_one_character() -> None:
    assert pairs("a=\\ud83d\\ude00") == [("a", "😀")]


def test_separators_in_a_key_are_escaped() -> None:
    assert pairs("a\\ b\\:c\\=d=e") == [("a b:c=d", "e")]


def test_a_key_alone_has_an_empty_value() -> None:
    assert pairs("a\nb=\n") == [("a", ""), ("b", "")]


def test_of_a_key_given_twice_the_last_counts_in_its_own_place() -> None:
    assert parse_properties("a=1\nb=2\na=3") == [Property("b", "2", 2), Property("a", "3", 3)]


def test_a_setting_is_known_by_the_line_it_begins_on() -> None:
    found = parse_properties("# head\r\na=1\\\r\n2\rb=3")
    assert found == [Property("a", "12", 2), Property("b", "3", 4)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=1\nb=\\u12g4", "\\u=1"])
def test_a_broken_unicode_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(MalformedProperties, match=f"line {text.count(chr(10)) + 1}: "):
        parse_properties(text)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain text", "key=plain text"),
        (r"C:\data\new", r"key=C:\\data\\new"),
        ("  two blanks", r"key=\  two blanks"),
        ("a=b:c#d!e", "key=a=b:c#d!e"),
        ("tab\tline\n", r"key=tab\tline\n"),
        ("K\xf6ln", r"key=K\u00f6ln"),
        ("\N{DUCK}", r"key=\ud83e\udd86"),
        ("", "key="),
    ],
)
def test_a_value_is_written_as_it_is_read(value: str, line: str) -> None:
    assert render_properties({"key": value}) == f"{line}\n"
    assert pairs(line) == [("key", value)]


def test_a_key_is_written_without_its_special_meaning() -> None:
    settings = {"#a key: 1=2": "v", "!": "w", "\\": ""}
    assert dict(pairs(render_properties(settings))) == settings


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(settings=st.dictionaries(TEXTS.filter(bool), TEXTS))
def test_rendered_properties_are_read_again(settings: dict[str, str]) -> None:
    assert pairs(render_properties(settings)) == list(settings.items())


def test_half_a_character_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        render_properties({"log.dirs": "\udcff"})
