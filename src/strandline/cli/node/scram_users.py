"""The form of SCRAM users in `strandline format --add-scram`: SCRAM-SHA-256=[name=alice,password=secret]."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from pathlib import Path

from strandline.node.random import RealRandom
from strandline.security.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    TYPES,
    credential_for,
    credential_of,
)
from strandline.wire.records.metadata import UserScramCredentialRecord

_SHAPE = "--add-scram: write a user as SCRAM-SHA-256=[name=alice,password=secret]"
_KEYS = ("name", "password", "password-file", "saltedpassword", "salt", "iterations")


def parse_scram_user(text: str) -> UserScramCredentialRecord:
    """Returns the record of a user; ValueError, without the password, if the text is not one."""
    match = re.fullmatch(r"([A-Z0-9-]+)=\[(.*)\]", text.strip(), re.DOTALL)
    if match is None or match[1] not in HASHES:
        raise ValueError(f"{_SHAPE}, with one of {', '.join(HASHES)}")
    mechanism = match[1]
    options: dict[str, str] = {}
    for part in match[2].split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or name not in _KEYS:
            raise ValueError(f"{_SHAPE}; its options are {', '.join(_KEYS)}")
        options[name] = value.strip('"')
    return _record(mechanism, options)


def _record(mechanism: str, options: dict[str, str]) -> UserScramCredentialRecord:
    name, password = options.get("name", ""), options.get("password")
    if "password-file" in options:
        password = Path(options["password-file"]).read_text().rstrip("\n")
    iterations = int(options.get("iterations", ITERATIONS_MIN))
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ValueError(f"--add-scram: iterations must be {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    try:
        salt = b64decode(options["salt"], validate=True) if "salt" in options else _salt()
        salted = b64decode(options.get("saltedpassword", ""), validate=True)
    except Base64Error:
        raise ValueError("--add-scram: salt and saltedpassword are written in base64") from None
    if not name or (password is None) == (not salted):
        raise ValueError("--add-scram: give a name, and either password (or password-file) or saltedpassword")
    if password is not None:
        credential = credential_for(mechanism, password, salt, iterations)
    else:
        credential = credential_of(mechanism, salt, salted, iterations)
    return UserScramCredentialRecord(
        name=name,
        mechanism=TYPES[mechanism],
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def _salt() -> bytes:
    random = RealRandom()
    return random.uuid() + random.uuid()
