"""The principal of a request that is forwarded, as brokers send it to the controller (KIP-590)."""

from __future__ import annotations

from strandline.wire.schema import Message, boolean, field, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: str = field(string)
    name: str = field(string)
    token_authenticated: bool = field(boolean)
