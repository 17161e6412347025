"""The operations that change nothing. Every instance serves them from its own state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from strandline import __version__
from strandline.ports.workers import Workers
from strandline.registry import errors
from strandline.registry.formats.parsed import InvalidSchema, Reference
from strandline.registry.formats.parsing import SCHEMA_TYPES
from strandline.registry.http.exchange import Exchange, Reply
from strandline.registry.http.openapi import openapi_document
from strandline.registry.model import queries
from strandline.registry.model.deletion import live_referrers
from strandline.registry.model.lookups import canonicalize, look_up_in_contexts
from strandline.registry.model.registration import find_violations
from strandline.registry.model.requests import RegisterRequest, read_register_request, read_version
from strandline.registry.model.scopes import config_in_scope, mode_in_scope, own_config, own_mode
from strandline.registry.model.state import RegistryState
from strandline.registry.model.stored_schema import StoredSchema, described
from strandline.registry.model.subjects import (
    DEFAULT_CONTEXT,
    context_of,
    is_default_context,
    normalized_subject,
    within_parent,
)
from strandline.registry.service.registry import Registry

SCHEMAS_MAX: Final = 1000  # the most schemas in one response, as schema.search.max.limit
_ID_MAX: Final = 2**31 - 1

Handler = Callable[[Exchange], Awaitable[Reply]]


class ReadOperations:
    def __init__(self, registry: Registry, workers: Workers) -> None:
        self._registry = registry
        self._workers = workers
        self.handlers: dict[tuple[str, str], Handler] = {
            ("GET", "root"): self._empty,
            ("POST", "root"): self._empty,
            ("GET", "schemas"): self._schemas,
            ("GET", "schema_types"): self._schema_types,
            ("GET", "schema_by_id"): self._schema_by_id,
            ("GET", "schema_text_by_id"): self._schema_text_by_id,
            ("GET", "subjects_by_id"): self._subjects_by_id,
            ("GET", "versions_by_id"): self._versions_by_id,
            ("GET", "schema_by_guid"): self._schema_by_guid,
            ("GET", "ids_by_guid"): self._ids_by_guid,
            ("GET", "subjects"): self._subjects,
            ("POST", "subject"): self._look_up,
            ("GET", "latest_with_metadata"): self._latest_with_metadata,
            ("GET", "versions"): self._versions,
            ("GET", "version"): self._version,
            ("GET", "version_text"): self._version_text,
            ("GET", "referenced_by"): self._referenced_by,
            ("POST", "compatibility_with_all"): self._compatibility_with_all,
            ("POST", "compatibility_with_version"): self._compatibility_with_version,
            ("GET", "global_config"): self._config,
            ("GET", "subject_config"): self._config,
            ("GET", "global_mode"): self._mode,
            ("GET", "subject_mode"): self._mode,
            ("GET", "contexts"): self._contexts,
            ("GET", "cluster_id"): self._cluster_id,
            ("GET", "server_version"): self._server_version,
            ("GET", "deployment"): self._deployment,
            ("GET", "openapi"): self._openapi,
        }

    @property
    def _state(self) -> RegistryState:
        return self._registry.state

    async def _empty(self, exchange: Exchange) -> Reply:
        return Reply({})

    # Schemas

    async def _schemas(self, exchange: Exchange) -> Reply:
        found = queries.list_schemas(
            self._state,
            exchange.text("subjectPrefix"),
            includes_deleted=exchange.flag("deleted"),
            is_latest_only=exchange.flag("latestOnly"),
            rule_type=exchange.text("ruleType"),
            has_aliases=exchange.flag("aliases"),
        )
        page = list(found)[exchange.page(SCHEMAS_MAX)]
        return Reply(
            [schema.to_json() | ({"aliases": aliases} if aliases else {}) for schema, aliases in page]
        )

    async def _schema_types(self, exchange: Exchange) -> Reply:
        return Reply(list(SCHEMA_TYPES))

    async def _schema_by_id(self, exchange: Exchange) -> Reply:
        id, subject = read_id(exchange), self._subject_parameter(exchange)
        schema = queries.find_by_id(self._state, id, subject)
        if schema is None:
            raise errors.schema_not_found(id)
        value = schema_string(schema, with_place=True)
        value["schema"] = await self._formatted(schema, exchange)
        if exchange.text("referenceFormat") == "qualified" and "references" in value:
            value["references"] = [each.to_json() for each in qualified_references(schema)]
        if exchange.flag("fetchMaxId"):
            id_max = self._state.id_max.get(context_of(schema.subject), schema.id)
            last = {key: value.pop(key) for key in ("ts", "deleted") if key in value}
            value |= {"maxId": id_max} | last
        return Reply(value)

    async def _schema_text_by_id(self, exchange: Exchange) -> Reply:
        id = read_id(exchange)
        schema = queries.find_by_id(self._state, id, self._subject_parameter(exchange))
        if schema is None:
            raise errors.schema_not_found(id)
        return Reply(text=await self._formatted(schema, exchange))

    async def _subjects_by_id(self, exchange: Exchange) -> Reply:
        places = self._places(exchange)
        return Reply(list(dict.fromkeys(each.subject for each in places))[exchange.page()])

    async def _versions_by_id(self, exchange: Exchange) -> Reply:
        listed = [{"subject": each.subject, "version": each.version} for each in self._places(exchange)]
        return Reply(listed[exchange.page()])

    def _places(self, exchange: Exchange) -> list[StoredSchema]:
        return queries.places_of_id(
            self._state,
            read_id(exchange),
            self._subject_parameter(exchange),
            includes_deleted=exchange.flag("deleted"),
        )

    def _subject_parameter(self, exchange: Exchange) -> str | None:
        if "subject" not in exchange.query:
            return None
        return queries.resolve_alias(self._state, exchange.text("subject"))

    async def _schema_by_guid(self, exchange: Exchange) -> Reply:
        guid = exchange.path["guid"]
        ids = queries.ids_of_guid(self._state, guid)
        if not ids:
            raise errors.schema_not_found(guid)
        context, id = ids[0]
        schema = self._state.schema_by_id(id, context)
        assert schema is not None
        value = schema_string(schema, with_place=False)
        value["schema"] = await self._formatted(schema, exchange)
        return Reply(value)

    async def _ids_by_guid(self, exchange: Exchange) -> Reply:
        found = queries.ids_of_guid(self._state, exchange.path["guid"])
        return Reply([{"context": context, "id": id} for context, id in found])

    # Subjects

    async def _subjects(self, exchange: Exchange) -> Reply:
        found = queries.list_subjects(
            self._state,
            exchange.text("subjectPrefix", ":*:"),
            includes_deleted=exchange.flag("deleted"),
            is_deleted_only=exchange.flag("deletedOnly"),
        )
        return Reply(found[exchange.page()])

    async def _look_up(self, exchange: Exchange) -> Reply:
        subject = normalized_subject(exchange.path["subject"])
        request = read_register_request(exchange.json_body())
        includes_deleted = exchange.flag("deleted")
        level = self._registry.settings.default_level
        normalizes = exchange.flag("normalize") or self._normalizes(subject)
        found = await self._workers.run(
            lambda: look_up_in_contexts(
                self._state,
                self._registry.parser,
                subject,
                request,
                level,
                normalizes=normalizes,
                includes_deleted=includes_deleted,
            )
        )
        if found is None:
            if not self._state.subject_exists(subject, includes_deleted=includes_deleted):
                raise errors.subject_not_found(subject)
            raise errors.schema_not_found()
        schema, is_whole = found
        value = schema.to_json(is_brief=not is_whole)
        value["schema"] = await self._formatted(schema, exchange)
        return Reply(value)

    async def _latest_with_metadata(self, exchange: Exchange) -> Reply:
        schema = queries.latest_with_metadata(
            self._state,
            normalized_subject(exchange.path["subject"]),
            dict(zip(exchange.query.get("key", ()), exchange.query.get("value", ()), strict=False)),
            includes_deleted=exchange.flag("deleted"),
        )
        value = schema.to_json()
        value["schema"] = await self._formatted(schema, exchange)
        return Reply(value)

    async def _versions(self, exchange: Exchange) -> Reply:
        subject = normalized_subject(exchange.path["subject"])
        deleted, deleted_only = exchange.flag("deleted"), exchange.flag("deletedOnly")
        as_negative = exchange.flag("deletedAsNegative")
        if not self._state.subject_exists(subject, includes_deleted=deleted or deleted_only):
            raise errors.subject_not_found(subject)
        listed = []
        for schema in self._state.versions.get(subject, ()):
            if as_negative:
                listed.append(-schema.version if schema.is_deleted else schema.version)
            elif schema.is_deleted if deleted_only else (deleted or not schema.is_deleted):
                listed.append(schema.version)
        return Reply(listed[exchange.page()])

    async def _version(self, exchange: Exchange) -> Reply:
        schema = self._find_version(exchange, includes_deleted=exchange.flag("deleted"))
        value = schema.to_json()
        value["schema"] = await self._formatted(schema, exchange)
        if exchange.text("referenceFormat") == "qualified" and "references" in value:
            value["references"] = [each.to_json() for each in qualified_references(schema)]
        return Reply(value)

    async def _version_text(self, exchange: Exchange) -> Reply:
        schema = self._find_version(exchange, includes_deleted=exchange.flag("deleted"))
        return Reply(text=await self._formatted(schema, exchange))

    async def _referenced_by(self, exchange: Exchange) -> Reply:
        schema = self._find_version(exchange, includes_deleted=True)
        referrers = live_referrers(
            self._state, schema.subject, schema.version, includes_deleted=exchange.flag("deleted")
        )
        return Reply([id for _, id in referrers][exchange.page(SCHEMAS_MAX)])

    def _find_version(self, exchange: Exchange, *, includes_deleted: bool) -> StoredSchema:
        subject, version = (
            normalized_subject(exchange.path["subject"]),
            read_version(exchange.path["version"]),
        )
        return queries.find_version_in_contexts(
            self._state, subject, version, includes_deleted=includes_deleted
        )

    async def _formatted(self, schema: StoredSchema, exchange: Exchange) -> str:
        format = exchange.text("format").strip()
        if not format:
            return schema.text
        state, parser = self._state, self._registry.parser
        try:
            return await self._workers.run(lambda: parser.parse_stored(state, schema).formatted(format))
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from error

    # Compatibility

    async def _compatibility_with_all(self, exchange: Exchange) -> Reply:
        subject = normalized_subject(exchange.path["subject"])
        request = read_register_request(exchange.json_body())
        earlier = [each for each in self._state.versions.get(subject, ()) if not each.is_deleted]
        return await self._check(exchange, subject, request, earlier)

    async def _compatibility_with_version(self, exchange: Exchange) -> Reply:
        subject, version = (
            normalized_subject(exchange.path["subject"]),
            read_version(exchange.path["version"]),
        )
        request = read_register_request(exchange.json_body())
        schema = queries.find_version(self._state, subject, version, includes_deleted=False)
        if schema is None and version != -1:
            raise errors.version_not_found(version)
        return await self._check(exchange, subject, request, [] if schema is None else [schema])

    async def _check(
        self, exchange: Exchange, subject: str, request: RegisterRequest, earlier: list[StoredSchema]
    ) -> Reply:
        is_verbose = exchange.flag("verbose")
        normalizes = exchange.flag("normalize") or self._normalizes(subject)
        state, parser = self._state, self._registry.parser
        config = config_in_scope(state, subject, self._registry.settings.default_level)

        def check() -> list[str]:
            is_new = bool(config.get("validateNewSchemas", True))
            canonical = canonicalize(
                state, parser, subject, request, config, is_new=is_new, normalizes=normalizes
            )
            if canonical is None:
                raise errors.invalid_schema("Empty schema")
            return find_violations(state, parser, config, *canonical, earlier)

        try:
            messages = await self._workers.run(check)
        except errors.RegistryError as error:
            if not is_verbose or error.code != 42201:
                raise
            messages = [error.message]
        value: dict[str, Any] = {"is_compatible": not messages}
        if is_verbose:
            value["messages"] = messages
        return Reply(value)

    def _normalizes(self, subject: str) -> bool:
        config = config_in_scope(self._state, subject, self._registry.settings.default_level)
        return bool(config.get("normalize", False))

    # Config, mode, contexts, the server itself

    async def _config(self, exchange: Exchange) -> Reply:
        subject = subject_or_none(exchange)
        level = self._registry.settings.default_level
        if exchange.flag("defaultToGlobal"):
            return Reply(config_in_scope(self._state, subject, level))
        config = own_config(self._state, subject, level)
        if config is None:
            assert subject is not None
            raise errors.subject_config_not_found(subject)
        return Reply(config)

    async def _mode(self, exchange: Exchange) -> Reply:
        subject = subject_or_none(exchange)
        if exchange.flag("defaultToGlobal"):
            return Reply({"mode": mode_in_scope(self._state, subject)})
        mode = own_mode(self._state, subject)
        if mode is None:
            assert subject is not None
            raise errors.subject_mode_not_found(subject)
        return Reply({"mode": mode})

    async def _contexts(self, exchange: Exchange) -> Reply:
        prefix = exchange.text("contextPrefix")
        listed = [each for each in (DEFAULT_CONTEXT, *self._state.contexts) if each.startswith(prefix)]
        return Reply(listed[exchange.page()])

    async def _cluster_id(self, exchange: Exchange) -> Reply:
        clusters = {
            "kafka-cluster": self._registry.cluster_id,
            "schema-registry-cluster": self._registry.settings.group,
        }
        return Reply({"scope": {"path": [], "clusters": clusters}})

    async def _server_version(self, exchange: Exchange) -> Reply:
        return Reply({"version": __version__, "commitId": "strandline"})

    async def _deployment(self, exchange: Exchange) -> Reply:
        return Reply({"attributes": []})

    async def _openapi(self, exchange: Exchange) -> Reply:
        return Reply(openapi_document())


def read_id(exchange: Exchange) -> int:
    """Returns the id in a path. A text that is not a number of 32 bits gives the error of an unknown path."""
    text = exchange.path["id"]
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal()) or abs(int(text)) > _ID_MAX:
        raise errors.not_found()
    return int(text)


def subject_or_none(exchange: Exchange) -> str | None:
    """Returns the subject of a config or mode; None for the default context, whose settings are the global ones."""
    subject = exchange.path.get("subject")
    return None if subject is None or is_default_context(subject) else normalized_subject(subject)


def schema_string(schema: StoredSchema, *, with_place: bool) -> dict[str, Any]:
    """Returns a schema by its id or guid. With a guid the response names no subject and version, because the same
    schema may have several."""
    value: dict[str, Any] = {"subject": schema.subject, "version": schema.version} if with_place else {}
    attributes = described(schema.type, schema.references, schema.metadata, schema.rule_set)
    value |= {"guid": schema.guid, "schemaType": attributes.pop("schemaType"), "schema": schema.text}
    value |= attributes
    if schema.timestamp_ms is not None:
        value["ts"] = schema.timestamp_ms
    return value | {"deleted": schema.is_deleted}


def qualified_references(schema: StoredSchema) -> list[Reference]:
    return [replace(each, subject=within_parent(schema.subject, each.subject)) for each in schema.references]
