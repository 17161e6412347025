"""The OpenAPI document of the interface, which the registry serves at /openapi.json."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from strandline import __version__
from strandline.registry.formats.levels import LEVELS
from strandline.registry.http.exchange import V1_JSON
from strandline.registry.model.requests import MODES

Json = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_NUMBER: Final[Json] = {"type": "integer", "format": "int32"}
_FLAG: Final[Json] = {"type": "boolean"}
_OBJECT: Final[Json] = {"type": "object"}


def _array(items: Json) -> Json:
    return {"type": "array", "items": items}


def _named(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_REFERENCE: Final[Json] = {
    "type": "object",
    "properties": {"name": _TEXT, "subject": _TEXT, "version": _NUMBER},
    "required": ["name", "subject", "version"],
}
_DESCRIBED: Final[Json] = {
    "guid": _TEXT,
    "schemaType": {"type": "string", "enum": ["AVRO", "JSON", "PROTOBUF"]},
    "schema": _TEXT,
    "references": _array(_REFERENCE),
    "metadata": _OBJECT,
    "ruleSet": _OBJECT,
    "ts": {"type": "integer", "format": "int64"},
    "deleted": _FLAG,
}
_COMPONENTS: Final[Json] = {
    "Error": {
        "type": "object",
        "properties": {"error_code": _NUMBER, "message": _TEXT},
        "required": ["error_code", "message"],
    },
    "RegisterRequest": {
        "type": "object",
        "properties": {
            "schema": _TEXT,
            "schemaType": {"type": "string", "enum": ["AVRO", "JSON", "PROTOBUF"]},
            "references": _array(_REFERENCE),
            "metadata": _OBJECT,
            "ruleSet": _OBJECT,
            "version": _NUMBER,
            "id": _NUMBER,
        },
    },
    "Registered": {
        "type": "object",
        "properties": {"id": _NUMBER, "version": _NUMBER, **_DESCRIBED},
        "required": ["id"],
    },
    "Schema": {
        "type": "object",
        "properties": {
            "subject": _TEXT,
            "version": _NUMBER,
            "id": _NUMBER,
            "aliases": _array(_TEXT),
            **_DESCRIBED,
        },
        "required": ["subject", "version", "id", "schema"],
    },
    "SchemaString": {
        "type": "object",
        "properties": {"subject": _TEXT, "version": _NUMBER, "maxId": _NUMBER, **_DESCRIBED},
        "required": ["schema"],
    },
    "Compatibility": {
        "type": "object",
        "properties": {"is_compatible": _FLAG, "messages": _array(_TEXT)},
        "required": ["is_compatible"],
    },
    "ConfigUpdate": {
        "type": "object",
        "properties": {
            "compatibility": {"type": "string", "enum": list(LEVELS)},
            "compatibilityGroup": _TEXT,
            "alias": _TEXT,
            "normalize": _FLAG,
            "validateFields": _FLAG,
            "defaultMetadata": _OBJECT,
            "overrideMetadata": _OBJECT,
            "defaultRuleSet": _OBJECT,
            "overrideRuleSet": _OBJECT,
        },
    },
    "Config": {"type": "object", "properties": {"compatibilityLevel": _TEXT}},
    "Mode": {"type": "object", "properties": {"mode": {"type": ["string", "null"], "enum": [*MODES, None]}}},
    "SubjectVersion": {"type": "object", "properties": {"subject": _TEXT, "version": _NUMBER}},
    "ContextId": {"type": "object", "properties": {"context": _TEXT, "id": _NUMBER}},
}
_ERRORS: Final = {
    "400": "The body is not of the request's form.",
    "404": "Not found; the error code says what.",
    "406": "The registry has no response of a type that the client accepts.",
    "409": "The schema is incompatible with an earlier version (40901).",
    "413": "The body is too large.",
    "414": "The path is too long.",
    "415": "The content type of the body is not supported.",
    "422": "Not allowed, or invalid; the error code says why.",
    "500": "The topic of the schemas could not be written or read.",
}
_FLAGS: Final = frozenset(
    (
        "normalize", "deleted", "deletedOnly", "deletedAsNegative", "permanent", "verbose", "defaultToGlobal",
        "force", "recursive", "latestOnly", "aliases", "fetchMaxId",
    )
)  # fmt: skip
_PAGE: Final = ("offset", "limit")

# Path, method, what it does, parameters of the query, body, response
_OPERATIONS: Final[tuple[tuple[str, str, str, tuple[str, ...], str | None, Json | None], ...]] = (
    ("/schemas", "get", "List schemas",
     ("subjectPrefix", "deleted", "latestOnly", "aliases", "ruleType", *_PAGE), None, _array(_named("Schema"))),
    ("/schemas/types", "get", "List the types of schemas", (), None, _array(_TEXT)),
    ("/schemas/ids/{id}", "get", "Get a schema by its id",
     ("subject", "format", "referenceFormat", "fetchMaxId"), None, _named("SchemaString")),
    ("/schemas/ids/{id}/schema", "get", "Get the text of a schema by its id", ("subject", "format"), None, None),
    ("/schemas/ids/{id}/subjects", "get", "List the subjects that have a schema",
     ("subject", "deleted", *_PAGE), None, _array(_TEXT)),
    ("/schemas/ids/{id}/versions", "get", "List the versions that have a schema",
     ("subject", "deleted", *_PAGE), None, _array(_named("SubjectVersion"))),
    ("/schemas/guids/{guid}", "get", "Get a schema by its guid", ("format",), None, _named("SchemaString")),
    ("/schemas/guids/{guid}/ids", "get", "List the ids of a schema", (), None, _array(_named("ContextId"))),
    ("/subjects", "get", "List subjects",
     ("subjectPrefix", "deleted", "deletedOnly", *_PAGE), None, _array(_TEXT)),
    ("/subjects/{subject}", "post", "Find the version that has a schema",
     ("normalize", "format", "deleted"), "RegisterRequest", _named("Schema")),
    ("/subjects/{subject}", "delete", "Delete a subject", ("permanent",), None, _array(_NUMBER)),
    ("/subjects/{subject}/metadata", "get", "Get the latest version with metadata",
     ("key", "value", "format", "deleted"), None, _named("Schema")),
    ("/subjects/{subject}/versions", "get", "List versions",
     ("deleted", "deletedOnly", "deletedAsNegative", *_PAGE), None, _array(_NUMBER)),
    ("/subjects/{subject}/versions", "post", "Register a schema",
     ("normalize", "force"), "RegisterRequest", _named("Registered")),
    ("/subjects/{subject}/versions/{version}", "get", "Get a version",
     ("format", "referenceFormat", "deleted"), None, _named("Schema")),
    ("/subjects/{subject}/versions/{version}", "delete", "Delete a version", ("permanent",), None, _NUMBER),
    ("/subjects/{subject}/versions/{version}/schema", "get", "Get the text of a version",
     ("format", "deleted"), None, None),
    ("/subjects/{subject}/versions/{version}/referencedby", "get", "List the ids of schemas that refer to it",
     ("deleted", *_PAGE), None, _array(_NUMBER)),
    ("/compatibility/subjects/{subject}/versions", "post", "Compare a schema with the versions of a subject",
     ("verbose", "normalize"), "RegisterRequest", _named("Compatibility")),
    ("/compatibility/subjects/{subject}/versions/{version}", "post", "Compare a schema with a version",
     ("verbose", "normalize"), "RegisterRequest", _named("Compatibility")),
    ("/config", "get", "Get the global config", ("defaultToGlobal",), None, _named("Config")),
    ("/config", "put", "Change the global config", (), "ConfigUpdate", _named("ConfigUpdate")),
    ("/config", "delete", "Delete the global config", (), None, _named("Config")),
    ("/config/{subject}", "get", "Get the config of a subject", ("defaultToGlobal",), None, _named("Config")),
    ("/config/{subject}", "put", "Change the config of a subject", (), "ConfigUpdate", _named("ConfigUpdate")),
    ("/config/{subject}", "delete", "Delete the config of a subject", (), None, _named("Config")),
    ("/mode", "get", "Get the global mode", ("defaultToGlobal",), None, _named("Mode")),
    ("/mode", "put", "Change the global mode", ("force",), "Mode", _named("Mode")),
    ("/mode", "delete", "Delete the global mode", ("recursive",), None, _named("Mode")),
    ("/mode/{subject}", "get", "Get the mode of a subject", ("defaultToGlobal",), None, _named("Mode")),
    ("/mode/{subject}", "put", "Change the mode of a subject", ("force",), "Mode", _named("Mode")),
    ("/mode/{subject}", "delete", "Delete the mode of a subject", ("recursive",), None, _named("Mode")),
    ("/contexts", "get", "List contexts", ("contextPrefix", *_PAGE), None, _array(_TEXT)),
    ("/v1/metadata/id", "get", "Get the ids of the clusters", (), None, _OBJECT),
    ("/v1/metadata/version", "get", "Get the version of the registry", (), None, _OBJECT),
)  # fmt: skip


def openapi_document() -> Json:
    paths: dict[str, Json] = {}
    for path, method, summary, query, body, response in _OPERATIONS:
        paths.setdefault(path, {})[method] = _operation(path, summary, query, body, response)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Schema registry", "version": __version__},
        "paths": paths,
        "components": {"schemas": _COMPONENTS},
    }


def _operation(
    path: str, summary: str, query: Iterable[str], body: str | None, response: Json | None
) -> Json:
    named = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    made: Json = {
        "summary": summary,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": _NUMBER if name == "id" else _TEXT}
                for name in named
            ),
            *({"name": name, "in": "query", "schema": _query_schema(name)} for name in query),
        ],
        "responses": {
            "200": {"description": summary, "content": {V1_JSON: {"schema": response or {}}}},
            **{
                status: {"description": text, "content": {V1_JSON: {"schema": _named("Error")}}}
                for status, text in _ERRORS.items()
            },
        },
    }
    if body is not None:
        made["requestBody"] = {"required": True, "content": {V1_JSON: {"schema": _named(body)}}}
    return made


def _query_schema(name: str) -> Json:
    if name in _FLAGS:
        return _FLAG
    return {**_NUMBER, "minimum": 0} if name in _PAGE else _TEXT
