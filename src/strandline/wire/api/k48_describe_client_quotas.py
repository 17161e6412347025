"""DescribeClientQuotas (key 48), versions 0 to 1, flexible from 1."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    float64,
    int8,
    int16,
    int32,
    string,
)


class ComponentData(Struct):
    entity_type: str = field(string)
    match_type: int = field(int8)
    match: str | None = field(string, nullable="0+")


class DescribeClientQuotasRequest(Request, key=48, versions="0-1", flexible="1+"):
    components: tuple[ComponentData, ...] = field(array(ComponentData))
    strict: bool = field(boolean)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class ValueData(Struct):
    key: str = field(string)
    value: float = field(float64)


class EntryData(Struct):
    entity: tuple[EntityData, ...] = field(array(EntityData))
    values: tuple[ValueData, ...] = field(array(ValueData))


class DescribeClientQuotasResponse(Response, key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    entries: tuple[EntryData, ...] | None = field(array(EntryData), nullable="0+")
