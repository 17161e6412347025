"""The client of a schema registry, which caches the responses.

1. The schema of an id, a GUID or a version never changes: it is cached as long as there is room. The latest version of
   a subject is cached for `cache.latest.ttl.sec`.
2. Callers that need the same schema at the same time share one request.
3. If the registry does not respond, or responds that it cannot serve (408, 429, 5xx), the client asks again, at the
   next URL if there are several, `max.retries` times. Then it raises RegistryUnavailable.
4. If the registry does not know an id, the client asks again after a moment, because the instance that it asked may not
   have read yet what another one has just registered. After that the schema counts as unknown.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

from strandline.ports.clock import Clock
from strandline.ports.tls import Tls
from strandline.ports.web import Web, WebError, WebResponse
from strandline.serde.bounded_cache import BoundedCache
from strandline.serde.errors import (
    RegistryRefused,
    RegistryUnavailable,
    SchemaRegistryError,
    UnknownSchema,
    UnusableSchema,
)
from strandline.serde.real_ports import real_clock, real_tls, real_web, run_blocking
from strandline.serde.registry.schemas import RegisteredSchema, Schema
from strandline.serde.registry.settings import RegistryClientSettings, read_registry_settings

T = TypeVar("T")

_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_UNKNOWN_PAUSES_S: Final = (0.2, 0.8)
# The most imports of one schema. A registry refuses circles of imports; this limit ends one that it let pass.
_IMPORTS_MAX: Final = 1000
_UNAVAILABLE_STATUSES: Final = (408, 429)
_LATEST: Final = "latest"


class SchemaRegistry:
    """A schema registry at a URL. It is asked only for schemas that are not in the cache."""

    def __init__(self, settings: str | Mapping[str, Any], *, web: Web | None = None) -> None:
        """Takes a URL, or settings by Confluent's names: `url`, `basic.auth.user.info`, `ssl.ca.location` and others.
        Raises ValueError for those that cannot be used."""
        self._set_up(read_registry_settings(settings), web)

    def _set_up(self, settings: RegistryClientSettings, web: Web | None) -> None:
        self.settings = settings
        self._web = web
        self._clock: Clock | None = None
        self._tls: Tls | None = None
        self._url = 0
        self._known: BoundedCache[tuple[Any, ...], RegisteredSchema] = BoundedCache(self.settings.entries_max)
        self._latest: BoundedCache[str, tuple[RegisteredSchema, float]] = BoundedCache(
            self.settings.entries_max
        )
        self._requests: dict[tuple[Any, ...], asyncio.Task[Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Returns the settings alone: a copy in another process makes its own connections."""
        return {"settings": self.settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set_up(state["settings"], None)

    def use_ports(self, web: Web | None, clock: Clock) -> None:
        """Uses the ports of the client that this registry is for, unless it has ports already."""
        self._web = self._web or web
        self._clock = self._clock or clock

    @property
    def clock(self) -> Clock:
        if self._clock is None:
            self._clock = real_clock()
        return self._clock

    # Schemas that never change

    async def by_id(self, id: int, format: str = "") -> RegisteredSchema:
        """Returns the schema with an id, and its imports. Raises UnknownSchema."""
        return await self._cached(("id", id, format), partial(self._by_path, f"/schemas/ids/{id}", format))

    async def by_guid(self, guid: str, format: str = "") -> RegisteredSchema:
        """Returns the schema with a GUID, and its imports. Raises UnknownSchema."""
        look_up = partial(self._by_path, f"/schemas/guids/{guid}", format)
        return await self._cached(("guid", guid, format), look_up)

    async def by_version(self, subject: str, version: int, format: str = "") -> RegisteredSchema:
        """Returns a version of a subject, deleted or not, and its imports. Raises UnknownSchema."""
        path = f"/subjects/{_in_path(subject)}/versions/{version}?deleted=true"
        return await self._cached(("version", subject, version, format), partial(self._by_path, path, format))

    # Schemas of a subject

    async def latest(self, subject: str) -> RegisteredSchema:
        """Returns the latest version of a subject, and its imports. While the registry is away this is the last known
        one. Raises UnknownSchema."""
        cached = self._latest.get(subject)
        now = self.clock.monotonic()
        if cached is not None and now < cached[1]:
            return cached[0]
        path = f"/subjects/{_in_path(subject)}/versions/{_LATEST}"
        try:
            look_up = partial(self._by_path, path, "", unknown_pauses_s=())
            found = await self._shared(("latest", subject), look_up)
        except RegistryUnavailable:
            if cached is None:
                raise
            found = cached[0]
        self._latest.put(subject, (found, now + self.settings.latest_s))
        return found

    async def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Registers a schema, unless it is registered already. Raises RegistryRefused if it is not compatible."""
        return await self._cached(
            ("register", subject, schema, normalize),
            partial(self._post_schema, f"/subjects/{_in_path(subject)}/versions", subject, schema, normalize),
        )

    async def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Returns a schema that is registered under a subject, with its id and version. Raises UnknownSchema."""
        return await self._cached(
            ("lookup", subject, schema, normalize),
            partial(self._post_schema, f"/subjects/{_in_path(subject)}", subject, schema, normalize),
        )

    # Requests

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the decoded response to a request. Raises UnknownSchema for 404, RegistryRefused and
        RegistryUnavailable."""
        data = b"" if body is None else json.dumps(body).encode()
        wait_s = self.settings.wait_s
        for attempt in range(self.settings.retries_max + 1):
            if attempt:
                await asyncio.sleep(min(wait_s, self.settings.wait_max_s))
                wait_s *= 2
            try:
                return await self._ask_each(method, path, data)
            except RegistryUnavailable as error:
                failure = error
        raise failure

    async def _ask_each(self, method: str, path: str, data: bytes) -> Any:
        """Asks the URLs in turn, beginning with the one that responded last."""
        count = len(self.settings.urls)
        for at in range(count):
            number = (self._url + at) % count
            try:
                decoded = await self._ask_one(self.settings.urls[number], method, path, data)
            except RegistryUnavailable as error:
                failure = error
            else:
                self._url = number
                return decoded
        raise failure

    async def _ask_one(self, url: str, method: str, path: str, data: bytes) -> Any:
        headers = {"Accept": _CONTENT_TYPE, "Content-Type": _CONTENT_TYPE}
        if self.settings.authorization is not None:
            headers["Authorization"] = self.settings.authorization
        if self._web is None:
            self._web = real_web()
        if self._tls is None and self.settings.tls is not None:
            self._tls = real_tls(self.settings.tls)
        try:
            response = await self._web.request(
                method,
                f"{url}{path}",
                headers=headers,
                body=data,
                timeout_s=self.settings.timeout_s,
                tls=self._tls,
            )
        except WebError as error:
            raise RegistryUnavailable(f"the schema registry does not respond: {error}") from error
        return _decoded(response, url, method, path)

    # Parts of look-ups

    async def _by_path(
        self, path: str, format: str, *, unknown_pauses_s: tuple[float, ...] = _UNKNOWN_PAUSES_S
    ) -> RegisteredSchema:
        """Asks for a schema, again after each of the pauses while it is unknown, and for the schemas that it
        imports."""
        body = await self._ask_until_known(_with_format(path, format), unknown_pauses_s)
        schema = _schema(body, path)
        return RegisteredSchema(
            schema=schema,
            id=body.get("id"),
            guid=body.get("guid"),
            subject=body.get("subject"),
            version=body.get("version"),
            imported=await self.imported(schema, format),
        )

    async def imported(self, schema: Schema, format: str = "") -> tuple[tuple[str, Schema], ...]:
        """Returns the schemas that a schema imports, by name, each after its own imports."""
        found: dict[str, Schema] = {}

        async def visit(each: Schema) -> None:
            for reference in each.references:
                if reference.name in found:
                    continue
                if len(found) >= _IMPORTS_MAX:
                    raise UnusableSchema(f"the schema imports more than {_IMPORTS_MAX} others")
                path = f"/subjects/{_in_path(reference.subject)}/versions/{reference.version}?deleted=true"
                inner = _schema(await self.ask("GET", _with_format(path, format)), path)
                await visit(inner)
                found[reference.name] = inner

        await visit(schema)
        return tuple(found.items())

    async def _post_schema(
        self, path: str, subject: str, schema: Schema, normalize: bool
    ) -> RegisteredSchema:
        body = await self.ask("POST", f"{path}?normalize=true" if normalize else path, schema.to_json())
        return RegisteredSchema(
            schema=schema,
            id=int(body["id"]),
            guid=body.get("guid"),
            subject=subject,
            version=body.get("version"),
            imported=await self.imported(schema),
        )

    async def _ask_until_known(self, path: str, pauses_s: tuple[float, ...]) -> Any:
        for pause_s in pauses_s:
            try:
                return await self.ask("GET", path)
            except UnknownSchema:
                await asyncio.sleep(pause_s)
        return await self.ask("GET", path)

    # The cache

    async def _cached(
        self, key: tuple[Any, ...], look_up: Callable[[], Coroutine[Any, Any, RegisteredSchema]]
    ) -> RegisteredSchema:
        known = self._known.get(key)
        if known is None:
            known = await self._shared(key, look_up)
            self._known.put(key, known)
        return known

    async def _shared(self, key: tuple[Any, ...], look_up: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of one request to all callers on this loop that need it. The request goes on if one of
        them stops waiting."""
        loop = asyncio.get_running_loop()
        key = (loop, *key)
        task = self._requests.get(key)
        if task is None:
            task = self._requests[key] = loop.create_task(look_up())
            task.add_done_callback(lambda done: self._ended(key, done))
        result: T = await asyncio.shield(task)
        return result

    def _ended(self, key: tuple[Any, ...], task: asyncio.Task[Any]) -> None:
        self._requests.pop(key, None)
        if not task.cancelled():
            task.exception()  # marks it as seen: every caller may have stopped waiting

    # For code that blocks

    def blocking(self, call: Callable[[SchemaRegistry], Awaitable[T]]) -> T:
        """Returns the result of a call to code that blocks: `registry.blocking(lambda r: r.latest("orders-value"))`."""

        async def work() -> T:
            return await call(self)

        return run_blocking(work())


def _decoded(response: WebResponse, url: str, method: str, path: str) -> Any:
    if response.status < 300:
        try:
            return json.loads(response.body) if response.body else None
        except ValueError:
            raise RegistryRefused(
                f"{url} responds with something that is not JSON: is it a schema registry?",
                response.status,
                0,
            ) from None
    message, code = _error_of(response)
    if response.status in _UNAVAILABLE_STATUSES or response.status >= 500:
        raise RegistryUnavailable(f"{url} cannot serve {path} now: {response.status} {message}")
    if response.status == 404 and code != 404:
        raise UnknownSchema(f"the registry has no {path}: {message}")
    if response.status == 404:
        raise RegistryRefused(
            f"{url} has no {path}: is it a schema registry, and does it know such requests? {message}",
            404,
            code,
        )
    if response.status == 422 and method == "GET":
        raise UnusableSchema(f"the registry cannot give {path}: {message}")
    if response.status in (401, 403):
        message = f"{message or 'the login is refused'} (see basic.auth.user.info)"
    raise RegistryRefused(f"the registry refuses {path}: {message}", response.status, code)


def _error_of(response: WebResponse) -> tuple[str, int]:
    try:
        body = json.loads(response.body)
        return str(body["message"]), int(body["error_code"])
    except (ValueError, KeyError, TypeError):
        return response.body.decode(errors="replace")[:300], 404 if response.status == 404 else 0


def _schema(body: Any, path: str) -> Schema:
    try:
        return Schema.from_json(body)
    except (KeyError, TypeError, AttributeError):
        raise RegistryRefused(
            f"the response to {path} is not a schema: is it a schema registry?", 200, 0
        ) from None


def _with_format(path: str, format: str) -> str:
    if not format:
        return path
    return f"{path}{'&' if '?' in path else '?'}format={format}"


def _in_path(name: str) -> str:
    return quote(name, safe="")


__all__ = ["SchemaRegistry", "SchemaRegistryError"]
