"""Makes `client/sync/calls.pyi`: the asyncio clients' public methods and properties as plain calls, with their types.

    python -m tests.tidy.blocking_calls

Methods that a blocking class defines itself are left out: their own definitions have the types.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from strandline.client import sync
from strandline.client.admin import admin
from strandline.client.consumer import consumer
from strandline.client.producer import producer

FILE = Path(inspect.getfile(sync)).with_name("calls.pyi")
_CLASSES = (
    ("AdminCalls", admin.Admin, sync.Admin),
    ("ConsumerCalls", consumer.Consumer, sync.Consumer),
    ("ProducerCalls", producer.Producer, sync.Producer),
)
# `BlockingClient` has the first two; the others return something that only a coroutine can wait for.
_LEFT_OUT = {"start", "close", "append_batch", "send_nowait"}
_BEGINNING = """\
# Made from the asyncio classes by `make docs`; change those.
from strandline.client.sync.blocking import BlockingClient
"""


def text() -> str:
    """Returns the text that the file should hold."""
    imports: set[str] = set()
    classes = []
    for name, client, blocking in _CLASSES:
        body = [
            ast.unparse(_as_call(method, module, imports))
            for module, method in _methods(client, _own(blocking))
        ]
        classes.append(f"class {name}(BlockingClient):\n" + "\n".join(_indented(each) for each in body))
    return _formatted(_BEGINNING + "\n".join(sorted(imports)) + "\n\n" + "\n\n".join(classes) + "\n")


def _own(blocking: type) -> set[str]:
    """Returns the methods that the blocking class defines itself, and did not get from the asyncio one."""
    return {name for name, value in vars(blocking).items() if not hasattr(value, "__wrapped__")} - {
        name for name, value in vars(blocking).items() if isinstance(value, property)
    }


def _methods(
    client: type, left_out: set[str]
) -> Iterator[tuple[ModuleType, ast.FunctionDef | ast.AsyncFunctionDef]]:
    seen = left_out | _LEFT_OUT
    for owner in client.__mro__[:-1]:
        module = sys.modules[owner.__module__]
        tree = ast.parse(inspect.getsource(module))
        found = next(
            node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner.__name__
        )
        for node in found.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in seen:
                seen.add(node.name)
                if not node.name.startswith("_"):
                    yield module, node


def _as_call(
    method: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType, imports: set[str]
) -> ast.FunctionDef:
    """Blocking, without a body, its defaults left to the client; `imports` gets what its annotations need."""
    arguments = method.args
    arguments.defaults = [_default(default) for default in arguments.defaults]
    arguments.kw_defaults = [default and _default(default) for default in arguments.kw_defaults]
    annotated = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    for annotation in [method.returns, *(each.annotation for each in annotated if each is not None)]:
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Name):
                imports.update(_import_of(node.id, module))
    doc = ast.get_docstring(method)
    body: list[ast.stmt] = [ast.Expr(ast.Constant(doc if doc is not None else ...))]
    call = ast.FunctionDef(
        name=method.name,
        args=arguments,
        body=body,
        decorator_list=[each for each in method.decorator_list if ast.unparse(each) == "property"],
        returns=method.returns,
    )
    return ast.fix_missing_locations(call)


def _default(default: ast.expr) -> ast.expr:
    """Returns a default that can be read without its module, or an ellipsis."""
    try:
        ast.literal_eval(default)
    except ValueError:
        return ast.Constant(...)
    return default


def _import_of(name: str, module: ModuleType) -> Iterator[str]:
    """Returns the import that gives a module this name; nothing for what is built in."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    yield f"from {node.module} import {ast.unparse(alias)}"
                    return
        elif isinstance(node, ast.Import) and any((a.asname or a.name) == name for a in node.names):
            yield f"import {name}"
            return
    if name in vars(module):
        yield f"from {module.__name__} import {name}"


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in code.splitlines())


def _formatted(code: str) -> str:
    for command in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        arguments = [*command, "--stdin-filename", str(FILE), "-"]
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments], input=code, capture_output=True, text=True, check=True
        )
        code = ran.stdout
    return code


if __name__ == "__main__":
    FILE.write_text(text())
