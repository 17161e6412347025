"""One request and its response, apart from sockets: what handlers get and return."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from strandline.registry import errors
from strandline.registry.errors import RegistryError
from strandline.registry.model.rules import Json

V1_JSON: Final = "application/vnd.schemaregistry.v1+json"
_PRODUCED: Final = (V1_JSON, "application/vnd.schemaregistry+json", "application/json")
_CONSUMED: Final = (*_PRODUCED, "application/octet-stream")
BODY_DEPTH_MAX: Final = 200  # the most levels of nested JSON in a request
_INT_MAX: Final = 2**31 - 1


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request: its path is cut into decoded segments, the variable ones are in `path`."""

    method: str
    target: str  # path and query as they were received, to be forwarded
    path: dict[str, str] = field(default_factory=dict)
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    read: Callable[[bytes], Any] = json.loads  # a large body was already read, in another process

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def text(self, name: str, default: str = "") -> str:
        values = self.query.get(name)
        return values[0] if values else default

    def number(self, name: str, default: int) -> int:
        """Returns a number of the query. A parameter that is not a number gives the error of an unknown path, as with
        JAX-RS."""
        text = self.text(name)
        if not text:
            return default
        try:
            value = int(text)
        except ValueError:
            raise errors.not_found() from None
        if not -_INT_MAX - 1 <= value <= _INT_MAX:
            raise errors.not_found()
        return value

    def page(self, default_limit: int = _INT_MAX) -> slice:
        offset, limit = self.number("offset", 0), self.number("limit", -1)
        if offset < 0:
            raise errors.unprocessable("offset must not be negative")
        return slice(offset, offset + (limit if 0 < limit <= default_limit else default_limit))

    def json_body(self) -> Json:
        """Returns the body of a request that needs one. Raises RegistryError if it is not a JSON object."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind and kind not in _CONSUMED:
            raise RegistryError(415, 415, "HTTP 415 Unsupported Media Type")
        if not self.body.strip():
            raise errors.unprocessable("The request body must not be null")
        try:
            value = self.read(self.body)
        except (ValueError, RecursionError) as error:
            raise errors.bad_request(f"The request body is not JSON: {error}") from None
        if value is None:
            raise errors.unprocessable("The request body must not be null")
        if not isinstance(value, dict):
            raise errors.bad_request("Cannot deserialize the request: it is not an object")
        return value


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: JSON, or plain text where `text` is given."""

    value: Any = None
    status: int = 200
    text: str | None = None

    def encoded(self) -> bytes:
        if self.text is not None:
            return self.text.encode()
        if self.status == 204:
            return b""
        return json.dumps(self.value, separators=(",", ":"), ensure_ascii=False).encode()


def error_reply(error: RegistryError) -> Reply:
    return Reply(error.to_json(), error.status)


def negotiated_type(accept: str) -> str:
    """Returns the content type of the response. Raises RegistryError if the client accepts none of the registry's
    content types."""
    if not accept.strip():
        return V1_JSON
    offers: list[tuple[float, int, str]] = []
    for each in accept.split(","):
        kind, _, parameters = each.partition(";")
        kind = kind.strip().lower()
        quality = _quality(parameters)
        if quality <= 0:
            continue
        if kind in ("*/*", "application/*"):
            offers.append((quality, 0, V1_JSON))
        elif kind in _PRODUCED:
            offers.append((quality, -_PRODUCED.index(kind), kind))
    if not offers:
        raise RegistryError(406, 406, "HTTP 406 Not Acceptable")
    return max(offers)[2]


def _quality(parameters: str) -> float:
    for each in parameters.split(";"):
        name, _, value = each.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
