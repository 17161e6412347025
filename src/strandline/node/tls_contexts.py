"""TLS contexts of Python's `ssl`, made from Kafka's `ssl.*` settings.

Stores are PEM, in files or in the settings themselves; PKCS12 needs the extra `security`; JKS is refused with the
command that converts it. The contents of a file count, not its `ssl.keystore.type`: Kafka's default says JKS.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from typing import Final

from strandline.ports.tls import TlsError, TlsSettings, TlsStore

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PEM: Final = b"-----BEGIN "
_JKS: Final = b"\xfe\xed\xfe\xed"


class TlsContext:
    """The port `Tls`: a context that is made again when its files or its settings change.

    Connections that exist keep the context with which they were made.
    """

    def __init__(self, settings: TlsSettings, *, is_server: bool) -> None:
        self.settings = settings
        self._is_server = is_server
        self._stamps = _stamps(settings)
        self.context = _context(settings, is_server=is_server)

    def reload(self) -> bool:
        stamps = _stamps(self.settings)
        if stamps == self._stamps:
            return False
        self._stamps = stamps  # a file that cannot be used is complained of once
        self.context = _context(self.settings, is_server=self._is_server)
        return True

    def replace(self, settings: TlsSettings) -> None:
        if settings != self.settings:
            self.context = _context(settings, is_server=self._is_server)
            self.settings, self._stamps = settings, _stamps(settings)


def _stamps(settings: TlsSettings) -> tuple[tuple[int, int, int] | None, ...]:
    """Returns the stamps that tell one version of the files from another."""
    return tuple(_stamp(store.location) for store in (settings.key_store, settings.trust_store))


def _stamp(path: str | None) -> tuple[int, int, int] | None:
    try:
        status = None if path is None else os.stat(path)
    except OSError:
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size, status.st_ino)


def _context(settings: TlsSettings, *, is_server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _limit_versions(context, settings)
    if settings.cipher_suites:
        _choose_ciphers(context, settings)
    if is_server:
        if not settings.key_store.is_given:
            raise TlsError(
                f"{settings.prefix}ssl.keystore.location is missing: a listener that speaks TLS needs a private key "
                "and a certificate; `strandline certs` makes them for development"
            )
        context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    else:
        context.check_hostname = settings.checks_host_names
    if settings.key_store.is_given:
        _load_key(context, settings)
    if settings.trust_store.is_given:
        _load_trust(context, settings)
    elif not is_server:
        context.load_default_certs()
    elif settings.client_auth != "none":
        raise TlsError(
            f"{settings.prefix}ssl.client.auth={settings.client_auth} needs {settings.prefix}ssl.truststore.location, "
            "with the authority that signs the certificates of clients"
        )
    return context


def _limit_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    unknown = [name for name in settings.protocols if name not in _VERSIONS]
    chosen = [_VERSIONS[name] for name in settings.protocols if name in _VERSIONS]
    if not chosen or unknown:
        raise TlsError(
            f"{settings.prefix}ssl.enabled.protocols has {', '.join(unknown) or 'nothing'}: TLSv1.2 and TLSv1.3 "
            "are spoken"
        )
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)


def _choose_ciphers(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Chooses ciphers by their names in Java or in OpenSSL. Those of TLS 1.3 are always on: Python's ssl has no way to
    choose them."""
    older = [_openssl_name(name) for name in settings.cipher_suites if not _is_of_tls_13(name)]
    try:
        if older:
            context.set_ciphers(":".join(older))
    except ssl.SSLError:
        raise TlsError(
            f"{settings.prefix}ssl.cipher.suites has none that OpenSSL knows: {', '.join(settings.cipher_suites)}"
        ) from None


def _is_of_tls_13(name: str) -> bool:
    return name.startswith("TLS_") and "_WITH_" not in name


def _openssl_name(name: str) -> str:
    """Returns OpenSSL's name of a cipher: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256
    there."""
    if not name.startswith("TLS_"):
        return name
    short = name.removeprefix("TLS_").removeprefix("RSA_WITH_").replace("_WITH_", "_").replace("_CBC_", "_")
    short = short.replace("AES_128", "AES128").replace("AES_256", "AES256")
    return short.replace("POLY1305_SHA256", "POLY1305").replace("_", "-")


def _load_key(context: ssl.SSLContext, settings: TlsSettings) -> None:
    store = settings.key_store
    password = store.key_password or store.password or ""
    try:
        if store.location is None:
            if store.key is None or store.certificates is None:
                raise TlsError(
                    f"{settings.prefix}ssl.keystore.key and {settings.prefix}ssl.keystore.certificate.chain belong "
                    "together: give both"
                )
            _load_pem_text(context, f"{store.key}\n{store.certificates}".encode(), password)
            return
        data = _read(store.location, f"{settings.prefix}ssl.keystore.location")
        if data.lstrip().startswith(_PEM) or _PEM in data[:65536]:
            context.load_cert_chain(store.location, password=password)
        else:
            _load_pem_text(context, _pem_of_pkcs12(data, store, settings.prefix, "keystore"), "")
    except ssl.SSLError as error:
        raise TlsError(
            f"{settings.prefix}ssl.keystore: the private key or its certificate cannot be used ({error.reason}): check "
            "ssl.key.password, and that the key belongs to the first certificate"
        ) from None


def _load_pem_text(context: ssl.SSLContext, text: bytes, password: str) -> None:
    """Loads keys from text, through a file that only this process sees: OpenSSL reads keys from files alone."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("strandline-key")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="strandline-key-")
    try:
        os.write(descriptor, text)
        context.load_cert_chain(path, password=password)
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            os.unlink(path)


def _load_trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    store = settings.trust_store
    key = f"{settings.prefix}ssl.truststore"
    try:
        if store.location is None:
            context.load_verify_locations(cadata=store.certificates)
            return
        data = _read(store.location, f"{key}.location")
        if not data.lstrip().startswith(_PEM) and _PEM not in data[:65536]:
            data = _pem_of_pkcs12(data, store, settings.prefix, "truststore")
        context.load_verify_locations(cadata=data.decode("ascii", "ignore"))
    except ssl.SSLError as error:
        raise TlsError(f"{key}: the certificates cannot be read ({error.reason})") from None


def _read(path: str, key: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise TlsError(f"{key}={path} cannot be read: {error.strerror}") from None


def _pem_of_pkcs12(data: bytes, store: TlsStore, prefix: str, what: str) -> bytes:
    """Returns key and certificates of a PKCS12 store as PEM."""
    key = f"{prefix}ssl.{what}.location={store.location}"
    if data.startswith(_JKS):
        raise TlsError(
            f"{key} is a JKS store, which only Java reads. Convert it: keytool -importkeystore -srckeystore "
            f"{store.location} -destkeystore {store.location}.p12 -deststoretype PKCS12"
        )
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise TlsError(
            f"{key} is a PKCS12 store, which needs `pip install 'strandline[security]'`. Or convert it: openssl pkcs12 "
            f"-in {store.location} -out {store.location}.pem -nodes"
        ) from None
    try:
        contents = pkcs12.load_pkcs12(data, (store.password or "").encode() or None)
    except ValueError:
        raise TlsError(f"{key} is no PKCS12 store, or ssl.{what}.password is not its password") from None
    parts = []
    if contents.key is not None:
        parts.append(contents.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    own = [] if contents.cert is None else [contents.cert]
    parts += [each.certificate.public_bytes(Encoding.PEM) for each in (*own, *contents.additional_certs)]
    return b"".join(parts)
