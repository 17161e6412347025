"""SaslHandshake (key 17), versions 0 and 1; after version 0, SASL messages are frames without headers."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, array, field, int16, string


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    mechanism: str = field(string)


class SaslHandshakeResponse(Response, key=17, versions="0-1"):
    error_code: int = field(int16)
    mechanisms: tuple[str, ...] = field(array(string))
