"""Settings that people give to a command: KEY=VALUE, or a .properties file."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.config import MalformedProperties, parse_properties


def given_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Returns the settings of KEY=VALUE texts. The text of a ValueError says how to write one."""
    settings = {}
    for given in pairs:
        key, equals, value = given.partition("=")
        if not equals:
            raise ValueError(f"--set {given}: write it as KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def read_settings(path: str) -> dict[str, str]:
    """Returns the settings of a server.properties file. The text of a ValueError says what is wrong with it."""
    try:
        return {entry.key: entry.value for entry in parse_properties(_read_text(path))}
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except MalformedProperties as error:
        raise ValueError(f"{path}: {error}") from error


def _read_text(path: str) -> str:
    """Returns the text of a .properties file. Java reads these files as Latin-1, but most people write UTF-8; a text is
    hardly ever valid in both encodings with different meanings."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        with open(path, encoding="latin-1") as file:
            return file.read()
