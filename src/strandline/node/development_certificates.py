"""Certificates for development and tests: an authority, and certificates that it signs, as PEM files.

Needs the extra `security`. Private keys are readable by their owner only. Keys are ECDSA P-256: small, and quick in a
handshake.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from strandline.ports.tls import TlsError

CA_CERTIFICATE: Final = "ca.pem"
CA_KEY: Final = "ca.key"
DAYS: Final = 825  # the longest that browsers and Java accept


class CertificateFiles(NamedTuple):
    """A private key with its certificate in one file, as `ssl.keystore.location` wants it, and the authority."""

    key_store: Path
    authority: Path


def make_authority(directory: Path, name: str = "Strandline development CA", days: int = DAYS) -> Path:
    """Makes an authority unless there is one; returns the path of its certificate."""
    x509, ec, hashes, _ = _cryptography()
    certificate, key_file = directory / CA_CERTIFICATE, directory / CA_KEY
    if certificate.exists() and key_file.exists():
        return certificate
    directory.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    signed = (
        _builder(x509, subject, subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(x509, signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_secret(key_file, _key_pem(key))
    write_secret(certificate, _certificate_pem(signed), mode=0o644)
    return certificate


def make_certificate(
    directory: Path,
    name: str,
    hosts: Sequence[str] = (),
    *,
    organization: str | None = None,
    days: int = DAYS,
    keeps_existing: bool = False,
) -> CertificateFiles:
    """Makes a certificate by the authority in `directory`, for servers on these hosts and for clients of this name.
    Negative days make one that has expired, for tests."""
    x509, ec, hashes, serialization = _cryptography()
    authority = make_authority(directory)
    path = directory / f"{name}.pem"
    if keeps_existing and path.exists():
        return CertificateFiles(path, authority)
    ca = x509.load_pem_x509_certificate(authority.read_bytes())
    ca_key = serialization.load_pem_private_key((directory / CA_KEY).read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]
    if organization is not None:
        parts.insert(0, x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, organization))
    usage = [x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(x509, x509.Name(parts), ca.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(x509, signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key()), critical=False)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_alternative(x509, host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    signed = builder.sign(ca_key, hashes.SHA256())
    write_secret(path, _key_pem(key) + _certificate_pem(signed) + authority.read_bytes())
    return CertificateFiles(path, authority)


def _cryptography() -> tuple[Any, Any, Any, Any]:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise TlsError("certificates are made with `pip install 'strandline[security]'`") from None
    return x509, ec, hashes, serialization


def _builder(x509: Any, subject: Any, issuer: Any, public_key: Any, days: int) -> Any:
    now = datetime.datetime.now(datetime.UTC)
    begin = now - datetime.timedelta(days=1 if days >= 0 else 1 - days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _key_usage(x509: Any, *, signs: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: Any) -> bytes:
    *_, serialization = _cryptography()
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem


def _certificate_pem(certificate: Any) -> bytes:
    *_, serialization = _cryptography()
    pem: bytes = certificate.public_bytes(serialization.Encoding.PEM)
    return pem


def write_secret(path: Path, contents: bytes, mode: int = 0o600) -> None:
    """Replaces the file as a whole: a broker that watches it never reads a half."""
    scratch = path.with_name(f".{path.name}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(contents)
    os.replace(scratch, path)
