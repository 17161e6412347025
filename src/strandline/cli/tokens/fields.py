"""Options and output that the commands about tokens share."""

from __future__ import annotations

import argparse
import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.connection import add_connection
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import moment

if TYPE_CHECKING:
    from strandline.client.admin.tokens import DelegationToken

SHAPE: Final = {
    "token_id": "text",
    "owner": "text",
    "requester": "text",
    "renewers": ["text"],
    "issued": "number",
    "expires": "number",
    "max": "number",
}
HEAD: Final = ("TOKEN ID", "OWNER", "RENEWERS", "ISSUED", "EXPIRES", "AT THE LATEST")


def document_of(token: DelegationToken) -> dict[str, Any]:
    """Returns a token without its HMAC, which is a password."""
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued": token.issued_ms,
        "expires": token.expires_ms,
        "max": token.max_ms,
    }


def cells_of(token: DelegationToken) -> tuple[object, ...]:
    times = (moment(token.issued_ms), moment(token.expires_ms), moment(token.max_ms))
    return (token.token_id, token.owner, token.renewers, *times)


def add_period(parser: argparse.ArgumentParser, help_of_period: str) -> None:
    """Adds the arguments of a command that moves the end of a token."""
    parser.add_argument("hmac", type=hmac, metavar="HMAC", help="the HMAC, as `tokens create` printed it")
    parser.add_argument("--period", type=milliseconds, default=-1, metavar="TIME", help=help_of_period)
    add_connection(parser)
    add_json(parser, {"expires": "number"})


def show_end(options: argparse.Namespace, expires_ms: int, sentence: str) -> int:
    """Prints when the token ends; returns the exit code."""
    if options.json:
        print_json({"expires": expires_ms})
    else:
        print(f"{sentence} {moment(expires_ms)}")
    return DONE


def principal(text: str) -> str:
    """Returns the principal of `User:alice`; a name without a type is a user."""
    return text if ":" in text else f"User:{text}"


def hmac(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise argparse.ArgumentTypeError("an HMAC is base64, as `tokens create` printed it") from error


def milliseconds(text: str) -> int:
    """Returns a duration such as 30m, 12h or 7d."""
    units = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    number, unit = text[:-1], text[-1:]
    if not number.isdigit() or unit not in units:
        raise argparse.ArgumentTypeError(f"{text} is not a duration: write it as 30m, 12h or 7d")
    return int(number) * units[unit]
