"""Makes `client/config/keywords.py`: the settings of each client as keywords, for editors and type checkers.

python -m tests.tidy.client_keywords
"""

from __future__ import annotations

import inspect
from pathlib import Path

from strandline.client.config import config
from strandline.client.config.admin_keys import ADMIN_KEYS
from strandline.client.config.consumer_keys import CONSUMER_KEYS
from strandline.client.config.producer_keys import PRODUCER_KEYS
from strandline.client.config.shared_keys import COMMON_KEYS
from strandline.config.definition import BOOLEAN, CLASS, INT, LIST, LONG, ConfigKey

FILE = Path(inspect.getfile(config)).with_name("keywords.py")
_TYPES = {
    BOOLEAN: "bool | str",
    CLASS: "Any",
    INT: "int | str",
    LIST: "str | Sequence[Any]",
    LONG: "int | str",
}
_HEAD = '''"""The settings of each client as keywords, for editors and type checkers.

Made from the keys by `make docs`; change those. docs/reference/client-configuration.md says what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict
'''


def text() -> str:
    """Returns the text that the file should hold."""
    common = {key.name for key in COMMON_KEYS}
    parts = [_HEAD, _class("CommonKeywords", "TypedDict, total=False", "every client", COMMON_KEYS)]
    for name, keys in (("Producer", PRODUCER_KEYS), ("Consumer", CONSUMER_KEYS), ("Admin", ADMIN_KEYS)):
        own = [key for key in keys if key.name not in common]
        parts.append(_class(f"{name}Keywords", "CommonKeywords, total=False", f"`{name}`", own))
    return "\n\n".join(parts)


def _class(name: str, bases: str, whose: str, keys: object) -> str:
    assert isinstance(keys, list | tuple)
    fields = "\n".join(_field(key) for key in keys)
    return f'class {name}({bases}):\n    """The settings of {whose}."""\n\n{fields}\n'


def _field(key: ConfigKey) -> str:
    kind = _TYPES.get(key.type, "str")
    if key.default is None and key.type != CLASS:
        kind += " | None"
    return f"    {key.name.replace('.', '_')}: {kind}"


if __name__ == "__main__":
    FILE.write_text(text())
