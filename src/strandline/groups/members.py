"""The sender of a group request, and the ids that new members get."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.ports.random import Random


class Caller(NamedTuple):
    """The client that sent a request."""

    client_id: str
    client_host: str
    api_version: int
    # Tells whether the client may describe a topic; None if every client may.
    may_describe: Callable[[str], bool] | None = None


def member_id_for(prefix: str, random: Random) -> str:
    return f"{prefix}-{uuid_string(random.uuid())}"


def uuid_string(uuid: bytes) -> str:
    """Returns the UUID in the form with dashes, as in member ids."""
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
