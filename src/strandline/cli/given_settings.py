"""Settings that people give to a command: KEY=VALUE, or a .properties file."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.config import MalformedProperties, parse_properties


def given_settings(pairs: Sequence[str]) -> dict[str, str]:
    """From KEY=VALUE; ValueError says how to write it."""
    settings = {}
    for given in pairs:
        key, equals, value = given.partition("=")
        if not equals:
            raise ValueError(f"--set {given}: write it as KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def read_settings(path: str) -> dict[str, str]:
    """From a server.properties file; ValueError says what is wrong with it."""
    try:
        return {entry.key: entry.value for entry in parse_properties(_read_text(path))}
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except MalformedProperties as error:
        raise ValueError(f"{path}: {error}") from error


def _read_text(path: str) -> str:
    """Java's files of properties are in Latin-1; most people write UTF-8 all the same, and that is hardly ever both."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        with open(path, encoding="latin-1") as file:
            return file.read()
