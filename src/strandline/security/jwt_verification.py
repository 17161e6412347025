"""Tokens of OAUTHBEARER: signed JWTs, checked with a set of keys (JWKS) and by the claims that settings require.

PyJWT and cryptography verify the signatures; they come with the extra `security` and are imported with the first set of
keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from strandline.security.exchange import AuthenticationFailed
from strandline.security.oauthbearer import VerifiedToken

# Only signatures by private keys: with a shared secret the server could make tokens, too.
_ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)


class UnusableKeys(ValueError):
    """The set of keys cannot be read, or the extra that reads it is missing."""


class UnknownKey(AuthenticationFailed):
    """The token names a key that the set does not have; the key may be newer than the set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """The claims that a token must have."""

    audience: tuple[str, ...] = ()
    issuer: str | None = None
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    clock_skew_s: int = 30


def parse_jwks(text: bytes) -> dict[str, Any]:
    """Returns keys by id; raises UnusableKeys if there is none."""
    try:
        import jwt
    except ImportError:
        raise UnusableKeys("OAUTHBEARER needs `pip install 'strandline[security]'`") from None
    try:
        listed = json.loads(text)["keys"]
        keys = {
            str(each.get("kid", "")): jwt.PyJWK(each).key
            for each in listed
            if each.get("use", "sig") == "sig"
        }
    except (ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise UnusableKeys(f"the set of keys (JWKS) cannot be read: {type(error).__name__}") from None
    if not keys:
        raise UnusableKeys("the set of keys (JWKS) has no key for signatures")
    return keys


def verify_token(token: str, keys: dict[str, Any], rules: TokenRules) -> VerifiedToken:
    """Returns the subject of a token that is genuine and valid now; raises AuthenticationFailed, which does not show
    the token."""
    import jwt

    try:
        head = jwt.get_unverified_header(token)
        key = keys.get(str(head.get("kid", "")))
        if key is None:
            raise UnknownKey("Authentication failed: the token's key is not in the JWKS")
        claims = jwt.decode(
            token,
            key,
            algorithms=list(_ALGORITHMS),
            audience=list(rules.audience) or None,
            issuer=rules.issuer,
            leeway=rules.clock_skew_s,
            options={"require": ["exp"], "verify_aud": bool(rules.audience)},
        )
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise AuthenticationFailed(f"Authentication failed: the token is refused ({error})") from None
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise AuthenticationFailed(f"Authentication failed: the token has no claim {rules.subject_claim}")
    return VerifiedToken(subject.strip(), int(claims["exp"] * 1000))
