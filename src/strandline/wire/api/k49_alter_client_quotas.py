"""AlterClientQuotas (key 49), versions 0 to 1, flexible from 1."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    float64,
    int16,
    int32,
    string,
)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class OpData(Struct):
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(boolean)


class EntryData(Struct):
    entity: tuple[EntityData, ...] = field(array(EntityData))
    ops: tuple[OpData, ...] = field(array(OpData))


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible="1+"):
    entries: tuple[EntryData, ...] = field(array(EntryData))
    validate_only: bool = field(boolean)


class EntityResult(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class EntryResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    entity: tuple[EntityResult, ...] = field(array(EntityResult))


class AlterClientQuotasResponse(Response, key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    entries: tuple[EntryResult, ...] = field(array(EntryResult))
