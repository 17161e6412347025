"""The calls of each engine, made blocking by `Face` when they are looked up.

`calls.pyi` beside this names them with their types. It is made from the engines by `make docs`, and a test says when
it is behind.
"""

from __future__ import annotations

from strandline.client.sync.blocking import Face


class AdminCalls(Face): ...


class ConsumerCalls(Face): ...


class ProducerCalls(Face): ...
