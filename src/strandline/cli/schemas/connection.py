"""Sends requests to a schema registry, and reports errors as sentences."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from strandline.cli.exit_codes import FAILED, NOT_FOUND, UNREACHABLE

if TYPE_CHECKING:
    from strandline.serde.registry.client import SchemaRegistry

DEFAULT_URL: Final = "http://localhost:8081"
_TIMEOUT_SECONDS: Final = 30.0
_TYPES: Final = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


class Refused(Exception):
    """The registry refused the request or cannot be reached; `code` is the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def add_registry_option(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Adds the options that name the registry. `is_optional` is for commands that use a registry only if one is
    given."""
    parser.add_argument(
        "--registry",
        default=None if is_optional else DEFAULT_URL,
        metavar="URL",
        help="the schema registry; values with a schema are decoded and printed as JSON"
        if is_optional
        else f"the schema registry (default: {DEFAULT_URL})",
    )
    parser.add_argument(
        "--registry-config",
        metavar="FILE",
        help="a .properties file with settings for the registry: basic.auth.user.info=NAME:PASSWORD, "
        "ssl.truststore.location and other ssl.* settings, with Confluent's names",
    )


def add_schema_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for a schema in a file and its imports."""
    parser.add_argument(
        "file", metavar="FILE", help="the file of the schema: .avsc, .json or .proto; - is stdin"
    )
    parser.add_argument(
        "--type",
        choices=("AVRO", "JSON", "PROTOBUF"),
        help="the type of the schema (default: by the file's name, otherwise AVRO)",
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME=SUBJECT:VERSION",
        help="a schema that this one imports under a name; repeat it for several",
    )


def read_schema(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the body of a request about the schema in a file. Raises Refused if it cannot be read."""
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{options.file} cannot be read: {error}", 2) from None
    type = options.type or _TYPES.get(Path(options.file).suffix, "AVRO")
    references = []
    for each in options.reference:
        name, equals, place = each.partition("=")
        subject, colon, version = place.rpartition(":")
        if not equals or not colon or not version.isdecimal():
            raise Refused(f"--reference {each}: write it as NAME=SUBJECT:VERSION", 2)
        references.append({"name": name, "subject": subject, "version": int(version)})
    return {"schema": text, "schemaType": type, "references": references}


def ask(options: argparse.Namespace, method: str, path: str, body: Any = None) -> Any:
    """Returns the decoded response of the registry. Raises Refused."""
    from strandline.registry.http.forwarding import send_request

    data = b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    login, tls = _access(options)
    if login:
        headers["Authorization"] = login
    try:
        status, text = send_request(options.registry, method, path, headers, data, _TIMEOUT_SECONDS, tls)
    except (ConnectionError, TimeoutError) as error:
        raise Refused(f"{error}; is the registry running, and is --registry right?", UNREACHABLE) from None
    if status >= 400:
        try:
            message = json.loads(text)["message"]
        except (ValueError, KeyError, TypeError):
            message = text.decode(errors="replace")[:500]
        raise Refused(str(message), NOT_FOUND if status == 404 else FAILED)
    return json.loads(text) if text else None


def _access(options: argparse.Namespace) -> tuple[str, Any]:
    """Returns the header of the login, and the context of TLS. Raises Refused if the settings cannot be used."""
    from strandline.node.tls_contexts import TlsContext
    from strandline.ports.tls import TlsError

    settings = registry_client(options).settings
    try:
        context = None if settings.tls is None else TlsContext(settings.tls, is_server=False).context
    except TlsError as error:
        raise Refused(str(error), 2) from None
    return settings.authorization or "", context


def registry_client(options: argparse.Namespace) -> SchemaRegistry:
    """Returns the client of the registry that the options name. Raises Refused if the settings cannot be used."""
    from strandline.cli.given_settings import read_settings
    from strandline.serde.registry.client import SchemaRegistry

    try:
        given = read_settings(options.registry_config) if options.registry_config else {}
        return SchemaRegistry({"max.retries": 0, **given, "url": options.registry})
    except ValueError as error:
        raise Refused(str(error), 2) from None


def registry_result(registry: SchemaRegistry, call: Callable[[SchemaRegistry], Any]) -> Any:
    """Returns the result of a call. Raises Refused if the registry refuses or does not respond, SerdeError if the
    registry does not have the requested schema."""
    from strandline.ports.tls import TlsError
    from strandline.serde.errors import RegistryUnavailable, SchemaRegistryError

    try:
        return registry.blocking(call)
    except RegistryUnavailable as error:
        raise Refused(f"{error}; is the registry running, and is --registry right?", UNREACHABLE) from None
    except (SchemaRegistryError, TlsError) as error:
        raise Refused(str(error), FAILED) from None


def in_path(name: str) -> str:
    return quote(name, safe="")


def fail(error: Refused) -> int:
    print(f"strandline: {error}", file=sys.stderr)
    return error.code


def pretty(type: str, text: str) -> str:
    """Returns the text of a schema with one attribute on each line."""
    if type == "PROTOBUF":
        return text.rstrip()
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
