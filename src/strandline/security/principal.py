"""Principals: the identities of connections."""

from __future__ import annotations

from typing import Final, NamedTuple

USER: Final = "User"


class Principal(NamedTuple):
    """A user, as ACLs and delegation tokens name it: `User:alice`."""

    kind: str
    name: str
    # True if the connection logged in with a delegation token: it may not create tokens itself.
    is_token_authenticated: bool = False

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")


def user(name: str) -> Principal:
    return Principal(USER, name)


def parse_principal(text: str) -> Principal:
    """Returns the principal that a text such as `User:alice` names; raises ValueError if it names none."""
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise ValueError(f"{text!r} is not a principal: write it as User:name")
    return Principal(kind, name)
