"""Bytes that are not Avro of their schema are described in words, without the names of Python's exceptions."""

from __future__ import annotations

from typing import Any

import pytest
from fastavro import parse_schema

from strandline.serde.avro import avro_decoder
from strandline.serde.errors import UndecodableValue


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        ("string", b"\x0aab", "its bytes end too early"),
        ("string", b"\x02\xff", "a string is not UTF-8"),
        ("long", b"", "its bytes end too early"),
    ],
)
def test_bytes_that_cannot_be_decoded_say_why(schema: Any, data: bytes, why: str) -> None:
    decode = avro_decoder(parse_schema(schema), None, "schema id 1")
    with pytest.raises(UndecodableValue) as raised:
        decode(data, 0)
    assert str(raised.value) == f"the value is not Avro of schema id 1: {why}"
