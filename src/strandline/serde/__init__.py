"""Serializers and deserializers: how keys and values become bytes, and values again.

A serializer is any function of (topic, value), a function of the value alone, or an object with `serialize(topic,
value)`; a deserializer the same with bytes, or an object with `deserialize(topic, data)`. The names `str`, `bytes`,
`json` and `none` stand for the ones here.
"""

from __future__ import annotations

from strandline.serde.builtin import deserializer_for, serializer_for

__all__ = ["deserializer_for", "serializer_for"]
