"""The distinguished name of a certificate as Kafka shows it: RFC 2253, the last part first, as Java writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
# Java writes these attributes by their numbers, and their values as bytes of the certificate.
_NUMBERS: Final = {
    "emailAddress": ("1.2.840.113549.1.9.1", 0x16),
    "serialNumber": ("2.5.4.5", 0x13),
    "givenName": ("2.5.4.42", 0x0C),
    "surname": ("2.5.4.4", 0x0C),
    "title": ("2.5.4.12", 0x0C),
    "dnQualifier": ("2.5.4.46", 0x13),
}
_ESCAPED: Final = ',+"\\<>;'

Subject = Sequence[Sequence[tuple[str, str]]]


def distinguished_name(subject: Subject) -> str:
    """Returns the name of a subject of the `ssl` module, which has its parts in the certificate's order, each of some
    pairs."""
    return ",".join("+".join(_pair(*pair) for pair in part) for part in reversed(subject))


def _pair(name: str, value: str) -> str:
    if name in _SHORT:
        return f"{_SHORT[name]}={_escaped(value)}"
    number, tag = _NUMBERS.get(name, (name, 0x0C))
    data = value.encode()
    return f"{number}=#{bytes([tag]).hex()}{_der_length(len(data)).hex()}{data.hex()}"


def _der_length(size: int) -> bytes:
    if size < 0x80:
        return bytes([size])
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([0x80 | len(digits)]) + digits


def _escaped(value: str) -> str:
    text = "".join(f"\\{c}" if c in _ESCAPED else c for c in value)
    if text[:1] in ("#", " "):
        text = "\\" + text
    if text.endswith(" ") and len(text) > 1 and not text.endswith("\\ "):
        text = text[:-1] + "\\ "
    return text
