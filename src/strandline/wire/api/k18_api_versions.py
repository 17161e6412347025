"""ApiVersions (key 18), versions 0 to 4, flexible from 3."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
)


class ApiVersionsRequest(Request, key=18, versions="0-4", flexible="3+"):
    client_software_name: str = field(string, "3+", default="", ignorable=True)
    client_software_version: str = field(string, "3+", default="", ignorable=True)


class ApiVersion(Struct):
    api_key: int = field(int16)
    min_version: int = field(int16)
    max_version: int = field(int16)


class SupportedFeatureKey(Struct):
    name: str = field(string, "3+", default="")
    min_version: int = field(int16, "3+", default=0)
    max_version: int = field(int16, "3+", default=0)


class FinalizedFeatureKey(Struct):
    name: str = field(string, "3+", default="")
    max_version_level: int = field(int16, "3+", default=0)
    min_version_level: int = field(int16, "3+", default=0)


class ApiVersionsResponse(Response, key=18, versions="0-4", flexible="3+"):
    error_code: int = field(int16)
    api_keys: tuple[ApiVersion, ...] = field(array(ApiVersion))
    throttle_time_ms: int = field(int32, "1+", default=0, ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = field(
        array(SupportedFeatureKey), "3+", default=(), tag=0, tagged="3+", ignorable=True
    )
    finalized_features_epoch: int = field(int64, "3+", default=-1, tag=1, tagged="3+", ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = field(
        array(FinalizedFeatureKey), "3+", default=(), tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = field(boolean, "3+", default=False, tag=3, tagged="3+", ignorable=True)
