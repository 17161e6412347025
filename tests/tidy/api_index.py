"""Makes `wire/api_index.py` from the wire classes: `python -m tests.tidy.api_index`. A test fails when it drifts."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from strandline.wire import api
from strandline.wire.schema import Request

PATH = Path(__file__).parents[2] / "src/strandline/wire/api_index.py"
HEAD = '''"""Every API by its key: name, module, versions. Generated from the classes in `wire/api` by `make docs`.

A node announces all of its APIs to each client; importing all of their classes for that would take longer than the rest
of its start.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class IndexedApi(NamedTuple):
    name: str
    module: str
    version_min: int
    version_max: int
    flexible_from: int


API_INDEX: Final = {
'''


def requests() -> list[tuple[str, type[Request]]]:
    found = []
    for each in iter_modules(api.__path__):
        module = import_module(f"{api.__name__}.{each.name}")
        found += [
            (each.name, cls)
            for cls in vars(module).values()
            if isinstance(cls, type) and issubclass(cls, Request) and cls.__module__ == module.__name__
        ]
    return sorted(found, key=lambda pair: pair[1].API_KEY)


def render() -> str:
    rows = [
        f"    {cls.API_KEY}: IndexedApi("
        f'"{cls.__name__.removesuffix("Request")}", "{module}", {cls.VERSIONS.low}, {cls.VERSIONS.high}, '
        f"{cls.FLEXIBLE.low if cls.FLEXIBLE.high >= 0 else cls.VERSIONS.high + 1}),\n"
        for module, cls in requests()
    ]
    return HEAD + "".join(rows) + "}\n"


if __name__ == "__main__":
    PATH.write_text(render())
