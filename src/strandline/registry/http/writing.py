"""The operations that write. The instance with the right to write (the writer) plans them; other instances forward
them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from strandline.base.planned import Planned
from strandline.client.errors import KafkaError
from strandline.ports.workers import Workers
from strandline.registry import errors
from strandline.registry.http.exchange import Exchange, Reply
from strandline.registry.http.reading import subject_or_none
from strandline.registry.model import deletion, settings_changes
from strandline.registry.model.registration import find_registered, plan_registration
from strandline.registry.model.requests import (
    checked_rule_set,
    read_config_update,
    read_mode,
    read_register_request,
    read_version,
)
from strandline.registry.model.rules import Json
from strandline.registry.model.scopes import config_in_scope
from strandline.registry.model.state import RegistryState
from strandline.registry.model.stored_schema import StoredSchema, described
from strandline.registry.model.subjects import (
    is_global_context,
    is_valid_subject,
    normalized_subject,
)
from strandline.registry.service.registry import NotWriter, Registry
from strandline.registry.storage.writer import WriterLost

FORWARDED: Final = "x-forward"  # the header that marks a request as forwarded by another instance
_PAUSE_SECONDS: Final = 0.1  # the seconds between two attempts to find the writer

T = TypeVar("T")


class Forwarder(Protocol):
    async def forward(self, url: str, exchange: Exchange) -> Reply:
        """Returns the writer's response. Raises ConnectionRefusedError if nobody is there, another ConnectionError if
        the connection broke, TimeoutError if no response comes, LeaderUnknown if the instance there is not the
        writer."""
        ...


class WriteOperations:
    def __init__(self, registry: Registry, workers: Workers, forwarder: Forwarder) -> None:
        self._registry = registry
        self._workers = workers
        self._forwarder = forwarder
        self.handlers: dict[tuple[str, str], Callable[[Exchange], Awaitable[Reply]]] = {
            ("POST", "versions"): self._register,
            ("DELETE", "subject"): self._delete_subject,
            ("DELETE", "version"): self._delete_version,
            ("PUT", "global_config"): self._update_config,
            ("PUT", "subject_config"): self._update_config,
            ("DELETE", "global_config"): self._delete_config,
            ("DELETE", "subject_config"): self._delete_config,
            ("PUT", "global_mode"): self._update_mode,
            ("PUT", "subject_mode"): self._update_mode,
            ("DELETE", "global_mode"): self._delete_mode,
            ("DELETE", "subject_mode"): self._delete_mode,
            ("DELETE", "context"): self._delete_context,
        }

    async def _register(self, exchange: Exchange) -> Reply:
        request = read_register_request(exchange.json_body())
        checked_rule_set(request.rule_set)
        if not is_valid_subject(exchange.path["subject"]):
            raise errors.invalid_subject(exchange.path["subject"])
        subject = normalized_subject(exchange.path["subject"])
        registry, level = self._registry, self._registry.settings.default_level
        config = config_in_scope(registry.state, subject, level)
        normalizes = exchange.flag("normalize") or bool(config.get("normalize", False))
        try:
            existing = await self._workers.run(
                lambda: find_registered(
                    registry.state, registry.parser, subject, request, level, normalizes=normalizes
                )
            )
        except errors.RegistryError:
            # The plan finds the version again, after it has checked whether writing is allowed.
            existing = None
        if existing is not None:
            return Reply(registered(existing))

        def plan(state: RegistryState) -> Planned[StoredSchema]:
            return plan_registration(
                state,
                registry.parser,
                subject,
                request,
                level,
                normalizes=normalizes,
                is_forced=exchange.flag("force"),
            )

        return await self._write(exchange, plan, lambda schema: Reply(registered(schema)))

    async def _delete_subject(self, exchange: Exchange) -> Reply:
        subject = normalized_subject(exchange.path["subject"])
        is_permanent = exchange.flag("permanent")
        return await self._write(
            exchange,
            lambda state: deletion.plan_subject_deletion(state, subject, is_permanent=is_permanent),
            Reply,
        )

    async def _delete_version(self, exchange: Exchange) -> Reply:
        subject, version = (
            normalized_subject(exchange.path["subject"]),
            read_version(exchange.path["version"]),
        )
        is_permanent = exchange.flag("permanent")
        return await self._write(
            exchange,
            lambda state: deletion.plan_version_deletion(state, subject, version, is_permanent=is_permanent),
            Reply,
        )

    async def _delete_context(self, exchange: Exchange) -> Reply:
        context = normalized_subject(exchange.path["context"])
        return await self._write(
            exchange,
            lambda state: deletion.plan_context_deletion(state, context),
            lambda _: Reply(status=204),
        )

    async def _update_config(self, exchange: Exchange) -> Reply:
        changes = read_config_update(exchange.json_body())
        self._check_settings_subject(exchange)
        subject = subject_or_none(exchange)
        return await self._write(
            exchange,
            lambda state: settings_changes.plan_config_update(state, subject, changes),
            lambda config: Reply(update_echo(config)),
        )

    async def _delete_config(self, exchange: Exchange) -> Reply:
        subject, level = subject_or_none(exchange), self._registry.settings.default_level
        return await self._write(
            exchange,
            lambda state: settings_changes.plan_config_deletion(state, subject, level),
            Reply,
        )

    async def _update_mode(self, exchange: Exchange) -> Reply:
        body = exchange.json_body()
        self._check_settings_subject(exchange)
        subject, mode = subject_or_none(exchange), read_mode(body)
        if mode == "FORWARD" and not is_global_context(subject):
            raise errors.invalid_mode("Forward mode only supported on global level")
        is_forced = exchange.flag("force")
        return await self._write(
            exchange,
            lambda state: settings_changes.plan_mode_update(state, subject, mode, is_forced=is_forced),
            lambda _: Reply({"mode": body["mode"]}),
        )

    async def _delete_mode(self, exchange: Exchange) -> Reply:
        subject, is_recursive = subject_or_none(exchange), exchange.flag("recursive")
        return await self._write(
            exchange,
            lambda state: settings_changes.plan_mode_deletion(state, subject, is_recursive=is_recursive),
            lambda mode: Reply({} if mode is None else {"mode": mode}),
        )

    def _check_settings_subject(self, exchange: Exchange) -> None:
        subject = exchange.path.get("subject")
        if subject is not None and not is_valid_subject(subject, is_config_or_mode=True):
            raise errors.invalid_subject(subject)

    # The instance that writes

    async def _write(
        self,
        exchange: Exchange,
        plan: Callable[[RegistryState], Planned[T]],
        reply: Callable[[T], Reply],
    ) -> Reply:
        """Plans and commits here if this instance is the writer, and otherwise forwards; takes the right to write if
        the writer is gone. While the right moves between instances, there are moments without a known writer. Then the
        instance that the client called tries again until its time is over. A commit that failed may have been carried
        out all the same, so a deletion is repeated once at most.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._registry.settings.timeout_seconds
        is_forwarded = FORWARDED in exchange.headers
        was_lost, is_retry = False, False
        while True:
            try:
                return reply(await self._registry.write(plan, self._workers.run))
            except NotWriter:
                try:
                    forwarded = await self._forward(exchange, is_retry=is_retry)
                except errors.LeaderUnknown as error:
                    failure = error
                else:
                    if forwarded is not None:
                        return forwarded
                    continue
            except WriterLost as error:
                if exchange.method == "DELETE" and (was_lost or is_forwarded):
                    raise errors.store_failed(f"the outcome of the deletion is unknown: {error}") from error
                was_lost = True
                failure = errors.LeaderUnknown(f"Leader not known. {error}")
            if is_forwarded or loop.time() >= deadline:
                raise failure
            await asyncio.sleep(_PAUSE_SECONDS)
            is_retry = True

    async def _forward(self, exchange: Exchange, *, is_retry: bool) -> Reply | None:
        """Returns the response of the writer; None if this instance has become the writer and must try again. Raises
        LeaderUnknown if the right to write was taken from the instance that should have it. An instance that receives a
        forwarded request does not take the right, because the two would take it from each other.
        """
        registry = self._registry
        if is_retry or registry.writer_url in (None, registry.settings.url):
            registry.writer_url = await self._known_writer()
        url = registry.writer_url
        if url is None or url == registry.settings.url:
            await registry.become_writer()
            return None
        if FORWARDED in exchange.headers:
            raise errors.LeaderUnknown(f"Leader not known. {url} has become the leader.")
        try:
            return await self._forwarder.forward(url, exchange)
        except ConnectionRefusedError:
            await registry.become_writer()
            return None
        except (ConnectionError, TimeoutError) as error:
            # From now on the old writer is fenced and cannot commit. The request may have been carried out before that:
            # repeating a registration or a setting changes nothing, but a repeated deletion would find nothing.
            await registry.become_writer()
            if exchange.method == "DELETE":
                raise errors.forwarding_failed(f"Error while forwarding to {url}: {error}") from error
            return None

    async def _known_writer(self) -> str | None:
        try:
            return await self._registry.find_writer()
        except KafkaError as error:
            raise errors.LeaderUnknown(f"Leader not known. {error}") from error


def registered(schema: StoredSchema) -> dict[str, Any]:
    value: dict[str, Any] = {"id": schema.id, "version": schema.version, "guid": schema.guid}
    value |= described(schema.type, schema.references, schema.metadata, schema.rule_set)
    value["schema"] = schema.text
    return value


def update_echo(config: Json) -> Json:
    """Returns a config with the key names of the response to its update."""
    return {("compatibility" if key == "compatibilityLevel" else key): value for key, value in config.items()}
