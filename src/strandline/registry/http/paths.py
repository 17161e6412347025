"""Cuts paths into segments and finds the operation of a path. A subject's name may have slashes and colons, so segments
are decoded only after the path is cut. A path that begins with `/contexts/<context>/` means the same path inside of
that context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, unquote

from strandline.registry import errors
from strandline.registry.model.subjects import ALL_CONTEXTS, normalized_context

Query = dict[str, list[str]]

# A segment in braces is variable. Each pattern has the name of its operation.
PATTERNS: Final[Mapping[str, str]] = {
    "/": "root",
    "/schemas": "schemas",
    "/schemas/types": "schema_types",
    "/schemas/ids/{id}": "schema_by_id",
    "/schemas/ids/{id}/schema": "schema_text_by_id",
    "/schemas/ids/{id}/subjects": "subjects_by_id",
    "/schemas/ids/{id}/versions": "versions_by_id",
    "/schemas/guids/{guid}": "schema_by_guid",
    "/schemas/guids/{guid}/ids": "ids_by_guid",
    "/subjects": "subjects",
    "/subjects/{subject}": "subject",
    "/subjects/{subject}/metadata": "latest_with_metadata",
    "/subjects/{subject}/versions": "versions",
    "/subjects/{subject}/versions/{version}": "version",
    "/subjects/{subject}/versions/{version}/schema": "version_text",
    "/subjects/{subject}/versions/{version}/referencedby": "referenced_by",
    "/compatibility/subjects/{subject}/versions": "compatibility_with_all",
    "/compatibility/subjects/{subject}/versions/{version}": "compatibility_with_version",
    "/config": "global_config",
    "/config/{subject}": "subject_config",
    "/mode": "global_mode",
    "/mode/{subject}": "subject_mode",
    "/contexts": "contexts",
    "/contexts/{context}": "context",
    "/v1/metadata/id": "cluster_id",
    "/v1/metadata/version": "server_version",
    "/v1/metadata/deployment": "deployment",
    "/openapi.json": "openapi",
}
_SEGMENTS: Final = [
    (tuple(each for each in pattern.split("/") if each), name) for pattern, name in PATTERNS.items()
]


def read_query(raw: bytes) -> Query:
    return parse_qs(raw.decode("latin-1"), keep_blank_values=True)


def cut_path(raw_path: str) -> list[str]:
    """Returns the decoded segments. Empty ones are dropped, except a subject of no name at the end."""
    segments = [unquote(each) for each in raw_path.split("/")[1:]]
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    return [] if segments == [""] else segments


def find_operation(segments: list[str]) -> tuple[str, dict[str, str]]:
    """Returns the name of the operation and its variable segments. Raises RegistryError if there is none."""
    for pattern, name in _SEGMENTS:
        if len(pattern) != len(segments):
            continue
        found: dict[str, str] = {}
        for part, segment in zip(pattern, segments, strict=True):
            if part.startswith("{"):
                found[part[1:-1]] = segment
            elif part != segment:
                break
        else:
            return name, found
    raise errors.not_found()


def enter_context(segments: list[str], query: Query) -> list[str]:
    """Returns the path and the query as they read without `/contexts/<context>` in front."""
    if len(segments) < 2 or segments[0] != "contexts":
        return segments
    try:
        context = normalized_context(segments[1])
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    rest = segments[2:]
    if not rest:
        return ["contexts", context] if context else segments
    if rest[0] in ("config", "mode"):
        if len(rest) == 1:
            return [rest[0], context] if context else rest
        return [rest[0], _in_context(context, rest[1]), *rest[2:]]
    made = list(rest)
    for place, segment in enumerate(rest[:-1]):
        if segment == "subjects":
            made[place + 1] = _in_context(context, rest[place + 1])
            break
    if rest[:2] == ["schemas", "ids"]:
        query["subject"] = [_in_context(context, query.get("subject", [""])[0])]
    elif rest in (["schemas"], ["subjects"]):
        query["subjectPrefix"] = [_in_context(context, each) for each in query.get("subjectPrefix", [""])]
    return made


def _in_context(context: str, subject: str) -> str:
    return subject if subject.startswith((":.", ALL_CONTEXTS)) else context + subject
