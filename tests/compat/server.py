"""The broker under test, and the facts about it that tests may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

STRANDLINE = "strandline"
APACHE = "apache"


class Server(Protocol):
    """The common interface of Strandline's and Apache Kafka's runners."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def data_dir(self) -> Path: ...

    @property
    def pid(self) -> int: ...


PrivateServer = Callable[[Mapping[str, str]], AbstractContextManager[Server]]
"""Starts a broker with settings of its own, which is stopped when its context closes."""


class CreateTopic(Protocol):
    """Creates a topic with the client under test and returns when all its leaders take records.

    Brokers may announce a topic a moment before they lead its partitions. A producer retries then, but one that
    is not idempotent may reorder its first records.
    """

    def __call__(
        self, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalServer:
    """A broker that somebody else runs, perhaps elsewhere."""

    bootstrap: str

    @property
    def data_dir(self) -> Path:
        pytest.skip(f"the files of the broker at {self.bootstrap} are out of reach")

    @property
    def pid(self) -> int:
        pytest.skip(f"the process of the broker at {self.bootstrap} is out of reach")


def compat_target() -> str:
    """`strandline`, `apache` or the `host:port` of a running broker."""
    return os.environ.get("STRANDLINE_COMPAT_TARGET") or STRANDLINE
