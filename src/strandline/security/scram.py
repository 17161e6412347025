"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677, KIP-84), both sides.

1. A password is never sent, and the server does not store it: it stores salt, iterations, stored key and server key.
2. The client proves that it knows the password, and the server that it knows the credential. A client without a valid
   proof of the server has not logged in.
3. Each side contributes a part of the nonce, and refuses the other side if it changes that part.
4. Both sides refuse fewer than 4,096 iterations: a server in the middle could ask for few, to guess the password
   faster.
5. For a user who does not exist the exchange is the same and fails at the end, so that it does not show which users
   exist.

As in Kafka, names and passwords are UTF-8 without SASLprep, and there is no channel binding. A client that logs in with
a delegation token says so by the extension `tokenauth=true` (KIP-48).
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from strandline.security.exchange import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    AuthenticationFailed,
    invalid_credentials,
)
from strandline.security.principal import Principal, user

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384  # the limit for new credentials, as in Kafka
# The most iterations that a server may ask a client for: more would block the client's loop for seconds.
_CLIENT_ITERATIONS_MAX: Final = 1_000_000
HASHES: Final = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
# The numbers of the mechanisms in requests and records (KIP-554).
MECHANISM_TYPES: Final = {1: SCRAM_SHA_256, 2: SCRAM_SHA_512}
TYPES: Final = {name: number for number, name in MECHANISM_TYPES.items()}
_GS2_HEADER: Final = "n,"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """A server's credential for a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


# The owner of a delegation token, and the credential for its HMAC.
TokenCredential = tuple[Principal, StoredCredential, int]


def salted_password(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def credential_of(mechanism: str, salt: bytes, salted: bytes, iterations: int) -> StoredCredential:
    """Returns the credential for a salted password."""
    return StoredCredential(
        salt=salt,
        stored_key=hashlib.new(HASHES[mechanism], _hmac(mechanism, salted, b"Client Key")).digest(),
        server_key=_hmac(mechanism, salted, b"Server Key"),
        iterations=iterations,
    )


def credential_for(mechanism: str, password: str, salt: bytes, iterations: int) -> StoredCredential:
    """Returns the credential for a password."""
    salted = salted_password(mechanism, password.encode(), salt, iterations)
    return credential_of(mechanism, salt, salted, iterations)


class ScramServer:
    """The server's side. `find` returns the credentials of users, `find_token` those of delegation tokens."""

    def __init__(
        self,
        mechanism: str,
        find: Callable[[str], StoredCredential | None],
        find_token: Callable[[str], TokenCredential | None],
        nonce: str,
        decoy: bytes,
    ) -> None:
        """`decoy` is a secret of the node from which salts for users who do not exist are derived."""
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._nonce = nonce
        self._decoy = decoy
        self._credential: StoredCredential | None = None
        self._user: Principal | None = None
        self._exists = False
        self._first_bare = ""
        self._server_first = ""
        self._gs2 = ""
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    def step(self, message: bytes) -> bytes:
        try:
            text = message.decode()
            if self._credential is None:
                return self._first(text).encode()
            if self.principal is None:
                return self._final(text).encode()
        except (ValueError, Base64Error):  # bad UTF-8 and malformed messages
            pass
        raise invalid_credentials(self._mechanism)

    def _first(self, text: str) -> str:
        flag, authorization, bare = text.split(",", 2)
        if flag not in ("n", "y"):
            raise ValueError("channel binding is not supported")
        self._gs2 = f"{flag},{authorization},"
        self._first_bare = bare
        attributes = _attributes(bare)
        name = _unescaped(attributes["n"])
        self._nonce = attributes["r"] + self._nonce
        if not name or not attributes["r"]:
            raise ValueError("a name or a nonce is empty")
        if authorization and _unescaped(authorization.removeprefix("a=")) != name:
            raise ValueError("the authorization id is not the name")
        self._look_up(name, is_token=attributes.get("tokenauth") == "true")
        credential = self._credential
        assert credential is not None
        salt = b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first

    def _look_up(self, name: str, *, is_token: bool) -> None:
        found = None
        if is_token:
            token = self._find_token(name)
            if token is not None:
                self._user, found, self.expires_at_ms = token
        else:
            self._user, found = user(name), self._find(name)
        self._exists = found is not None and found.iterations >= ITERATIONS_MIN
        if found is None or not self._exists:
            seed = _hmac(self._mechanism, self._decoy, name.encode())
            found = StoredCredential(
                salt=seed[:26], stored_key=seed, server_key=seed, iterations=ITERATIONS_MIN
            )
        self._credential = found

    def _final(self, text: str) -> str:
        credential, mechanism = self._credential, self._mechanism
        assert credential is not None
        without_proof, _, proof = text.rpartition(",p=")
        attributes = _attributes(without_proof)
        # librdkafka before 2.2 sends its own part of the nonce twice; Kafka also compares only the end.
        if not attributes["r"].endswith(self._nonce):
            raise ValueError("the nonce does not end with the server's part")
        if b64decode(attributes["c"], validate=True) != self._gs2.encode():
            raise ValueError("the channel binding is not that of the first message")
        authenticated = f"{self._first_bare},{self._server_first},{without_proof}".encode()
        signature = _hmac(mechanism, credential.stored_key, authenticated)
        client_key = _xor(b64decode(proof, validate=True), signature)
        stored_key = hashlib.new(HASHES[mechanism], client_key).digest()
        is_valid = hmac.compare_digest(stored_key, credential.stored_key)
        if not is_valid or not self._exists:
            raise ValueError("the proof is wrong")
        self.principal = self._user
        return f"v={b64encode(_hmac(mechanism, credential.server_key, authenticated)).decode()}"


class ScramSecret:
    """A user's name and password, and the last salted password, because salting takes milliseconds."""

    def __init__(self, mechanism: str, name: str, password: str, *, is_token: bool = False) -> None:
        self.mechanism = mechanism
        self.name = name
        self.is_token = is_token
        self._password = password.encode()
        self._salted: tuple[bytes, int, bytes] | None = None

    def salted(self, salt: bytes, iterations: int) -> bytes:
        last = self._salted
        if last is None or last[:2] != (salt, iterations):
            salted = salted_password(self.mechanism, self._password, salt, iterations)
            last = self._salted = (salt, iterations, salted)
        return last[2]


class ScramClient:
    def __init__(self, secret: ScramSecret, nonce: str) -> None:
        self._secret = secret
        self._nonce = nonce
        extension = ",tokenauth=true" if secret.is_token else ""
        self._first_bare = f"n={_escaped(secret.name)},r={nonce}{extension}"
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        return f"{_GS2_HEADER},{self._first_bare}".encode()

    def step(self, challenge: bytes) -> bytes | None:
        try:
            text = challenge.decode()
            if self._server_signature is None:
                return self._final(text).encode()
            attributes = _attributes(text)
            if "e" in attributes:
                raise AuthenticationFailed(f"the broker refuses the login: {attributes['e']}")
            proof = b64decode(attributes["v"], validate=True)
        except (ValueError, Base64Error) as error:
            raise AuthenticationFailed(f"the broker's SCRAM message is malformed: {error}") from None
        if not hmac.compare_digest(proof, self._server_signature):
            raise AuthenticationFailed("the broker did not prove that it knows this user's credential")
        return None

    def _final(self, text: str) -> str:
        secret, attributes = self._secret, _attributes(text)
        nonce, iterations = attributes["r"], int(attributes["i"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed("the broker changed the nonce of this login")
        if not ITERATIONS_MIN <= iterations <= _CLIENT_ITERATIONS_MAX:
            raise AuthenticationFailed(
                f"the broker asks for {iterations} iterations of {secret.mechanism}, where {ITERATIONS_MIN} to "
                f"{_CLIENT_ITERATIONS_MAX} are allowed"
            )
        salted = secret.salted(b64decode(attributes["s"], validate=True), iterations)
        mechanism = secret.mechanism
        without_proof = f"c={b64encode(f'{_GS2_HEADER},'.encode()).decode()},r={nonce}"
        authenticated = f"{self._first_bare},{text},{without_proof}".encode()
        client_key = _hmac(mechanism, salted, b"Client Key")
        signature = _hmac(mechanism, hashlib.new(HASHES[mechanism], client_key).digest(), authenticated)
        server_key = _hmac(mechanism, salted, b"Server Key")
        self._server_signature = _hmac(mechanism, server_key, authenticated)
        return f"{without_proof},p={b64encode(_xor(client_key, signature)).decode()}"


class _Attributes(dict[str, str]):
    def __missing__(self, name: str) -> str:
        raise ValueError(f"the message has no {name}=")


def _attributes(text: str) -> _Attributes:
    """Returns the attributes of a message by name; raises ValueError if it has anything else, or a name twice."""
    found = _Attributes()
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name in found:
            raise ValueError("the message is malformed")
        found[name] = value
    return found


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    plain = name.replace("=2C", ",").replace("=3D", "=")
    if _escaped(plain) != name:
        raise ValueError("a name with an equals sign that is no escape")
    return plain


def _hmac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
