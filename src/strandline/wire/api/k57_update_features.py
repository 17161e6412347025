"""UpdateFeatures (key 57), versions 0 to 2, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
)


class FeatureUpdateKey(Struct):
    feature: str = field(string)
    max_version_level: int = field(int16)
    allow_downgrade: bool = field(boolean, "0", default=False)
    upgrade_type: int = field(int8, "1+", default=1)


class UpdateFeaturesRequest(Request, key=57, versions="0-2", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    feature_updates: tuple[FeatureUpdateKey, ...] = field(array(FeatureUpdateKey))
    validate_only: bool = field(boolean, "1+", default=False)


class UpdatableFeatureResult(Struct):
    feature: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class UpdateFeaturesResponse(Response, key=57, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    results: tuple[UpdatableFeatureResult, ...] = field(
        array(UpdatableFeatureResult), "0-1", default=(), ignorable=True
    )
