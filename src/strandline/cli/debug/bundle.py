"""`strandline debug bundle`: collects metadata, settings, logs and metrics in one file, without secrets."""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import re
import tarfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.connection import add_connection, run, settings_of
from strandline.cli.contexts import HIDDEN, is_secret, without_secrets
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.progress import Progress
from strandline.cli.output.text import size

if TYPE_CHECKING:
    from strandline.client import Admin

# Only the end of each log is taken, because it has the latest errors.
_LOG_BYTES_MAX: Final = 5_000_000
_METRICS_SECONDS_MAX: Final = 10.0
_PROPERTY: Final = re.compile(r"^([^#!=:\s]+)(\s*[=:]\s*)(.*)$")
# Passwords inside values and log lines: JAAS settings, URLs with a user.
_INSIDE: Final = re.compile(
    r"""((?:password|secret|token|hmac|credential)[\w.]*\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;]+)""",
    re.IGNORECASE,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes a .tar.gz with the cluster's metadata, settings, groups and log directories. With --data it also has "
        "the logs and settings of the nodes that `up` runs there, and with --metrics pages of metrics. Passwords and "
        "other secrets are left out, but names of topics, groups and hosts are in it: check it before you give it "
        "away."
    )
    parser.add_argument(
        "--output", "-o", metavar="FILE", help="the file to write (default: strandline-debug-TIME.tar.gz)"
    )
    parser.add_argument(
        "--data", metavar="DIRECTORY", help="add logs and settings of the nodes in this directory"
    )
    parser.add_argument(
        "--log", action="append", default=[], metavar="FILE", help="add a log file; repeat it for several"
    )
    parser.add_argument(
        "--metrics",
        action="append",
        default=[],
        metavar="URL",
        help="add a page of metrics; repeat it for several",
    )
    add_connection(parser)
    add_json(parser, {"file": "text", "bytes": "number", "parts": ["text"], "missing": {"<part>": "text"}})


def call(options: argparse.Namespace) -> int:
    if options.data is not None and not os.path.isdir(options.data):
        raise usage(f"--data {options.data}: there is no such directory")
    return run(options, _bundle, "cluster", "topics", "configs", "groups", "producers")


async def _bundle(admin: Admin, options: argparse.Namespace) -> int:
    name = options.output or time.strftime("strandline-debug-%Y%m%d-%H%M%S.tar.gz", time.gmtime())
    parts: dict[str, bytes] = {"about.json": _json(_about(options))}
    missing: dict[str, str] = {}
    with Progress() as progress:
        for part, ask in _questions(admin).items():
            progress.say(f"collecting {part}")
            try:
                parts[f"{part}.json"] = _json(_plain(await ask()))
            except Exception as error:
                # Parts that cannot be collected are named: a bundle is made when something is wrong.
                missing[part] = str(error) or type(error).__name__
        for url in options.metrics:
            progress.say(f"reading {url}")
            try:
                parts[f"metrics/{re.sub(r'[^A-Za-z0-9.]+', '-', url)}.txt"] = _fetch(url)
            except (OSError, ValueError) as error:
                missing[url] = str(error)
    for path in [*_node_files(options.data), *map(Path, options.log)]:
        try:
            parts[f"nodes/{path.name}"] = _cleaned(path)
        except OSError as error:
            missing[str(path)] = error.strerror or str(error)
    if missing:
        parts["missing.json"] = _json(missing)
    _write(name, parts)
    used = os.path.getsize(name)
    if options.json:
        print_json({"file": name, "bytes": used, "parts": sorted(parts), "missing": missing})
        return DONE
    print(f"{name}: {size(used)}, {len(parts)} parts; secrets are left out")
    for part, why in missing.items():
        print(f"  without {part}: {why}")
    return DONE


def _about(options: argparse.Namespace) -> dict[str, Any]:
    from strandline import __version__

    return {
        "strandline": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "client": without_secrets(settings_of(options)),
    }


def _questions(admin: Admin) -> dict[str, Callable[[], Awaitable[Any]]]:
    from strandline.client.admin.configs import ConfigResource

    async def broker_configs() -> Any:
        nodes = sorted(each.node_id for each in (await admin.describe_cluster()).nodes)
        found = await admin.describe_configs([ConfigResource.broker(each) for each in nodes])
        return {resource.name: _settings(entries) for resource, entries in found.items()}

    async def topic_configs() -> Any:
        names = await admin.list_topics(include_internal=True)
        found = await admin.describe_configs([ConfigResource.topic(each) for each in names]) if names else {}
        return {resource.name: _settings(entries) for resource, entries in found.items()}

    async def groups() -> Any:
        listed = await admin.list_groups()
        kept = [each.group_id for each in listed if each.protocol_type in ("", "consumer")]
        return {"groups": listed, "described": await admin.describe_groups(kept) if kept else {}}

    async def log_dirs() -> Any:
        return await admin.describe_log_dirs(
            sorted(each.node_id for each in (await admin.describe_cluster()).nodes)
        )

    return {
        "cluster": lambda: admin.describe_cluster(include_fenced=True),
        "quorum": admin.describe_quorum,
        "features": admin.describe_features,
        "topics": admin.describe_all_topics,
        "topic-configs": topic_configs,
        "broker-configs": broker_configs,
        "groups": groups,
        "reassignments": admin.list_reassignments,
        "log-dirs": log_dirs,
        "transactions": admin.list_transactions,
    }


def _settings(entries: Any) -> dict[str, Any]:
    """Returns settings with their values and sources. Secret values are hidden; brokers do not send theirs."""
    return {
        key: {
            "value": HIDDEN if entry.is_sensitive or is_secret(key) else entry.value,
            "source": entry.source.name,
        }
        for key, entry in sorted(entries.items())
    }


def _plain(value: Any) -> Any:
    """Returns a value that JSON can have."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({each: getattr(value, each) for each in value.__dataclass_fields__})
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {_key(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key)


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True, default=str).encode()


def _fetch(url: str) -> bytes:
    from urllib.request import urlopen

    if not url.startswith(("http://", "https://")):
        raise ValueError("a page of metrics is http:// or https://")
    with urlopen(url, timeout=_METRICS_SECONDS_MAX) as response:
        found: bytes = response.read(_LOG_BYTES_MAX)
        return found


def _node_files(data: str | None) -> list[Path]:
    """Logs and settings that `up --nodes` keeps beside its nodes."""
    nodes = Path(data or ".", "nodes")
    if data is None or not nodes.is_dir():
        return []
    return sorted([*nodes.glob("*.stderr"), *nodes.glob("*.properties")])


def _cleaned(path: Path) -> bytes:
    """Returns the end of a text file, without secrets."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - _LOG_BYTES_MAX, 0))
        text = file.read().decode(errors="replace")
    return "\n".join(map(_line_without_secrets, text.split("\n"))).encode()


def _line_without_secrets(line: str) -> str:
    setting = _PROPERTY.match(line)
    if setting is not None and is_secret(setting[1]):
        return f"{setting[1]}{setting[2]}{HIDDEN}"
    return _INSIDE.sub(rf"\g<1>{HIDDEN}", line)


def _write(name: str, parts: dict[str, bytes]) -> None:
    """Writes the file with permissions for its owner only."""
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise usage(f"{name} is there already: choose another name with --output") from error
    except OSError as error:
        raise usage(f"{name} cannot be written: {error.strerror}") from error
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for part, content in sorted(parts.items()):
            entry = tarfile.TarInfo(f"strandline-debug/{part}")
            entry.size, entry.mtime = len(content), int(time.time())
            archive.addfile(entry, io.BytesIO(content))
