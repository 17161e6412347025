"""Connections that the driver opens to ask the cluster are closed, whatever fails on the way."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Self

import pytest

from strandline.client.errors import KafkaTimeoutError, UnknownTopicError
from strandline.spark import cluster
from strandline.spark.options import read_options
from strandline.spark.sink import commit_markers


class Client:
    """A client of either kind, which refuses what it is told to refuse."""

    refuses = ""
    opened: ClassVar[list[str]]
    closed: ClassVar[list[str]]

    def __init__(self, _settings: object) -> None:
        self.opened.append(type(self).__name__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed.append(type(self).__name__)
        self._may("close")

    def describe_topics(self, topics: list[str]) -> None:
        raise UnknownTopicError(None, f"there is no {topics[0]}")

    def create_topic(self, *_: object, **__: object) -> None:
        self._may("create_topic")

    def partitions_for(self, _topic: str) -> list[int]:
        self._may("partitions_for")
        return [0]

    def assign(self, _partitions: object) -> None: ...

    def seek_to_beginning(self, _partition: object) -> None: ...

    def _may(self, what: str) -> None:
        if self.refuses == what:
            raise KafkaTimeoutError(None, f"{what} took too long")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    class Fresh(Client):
        opened: ClassVar[list[str]] = []
        closed: ClassVar[list[str]] = []

    for module, admin in ((cluster, "SourceAdmin"), (commit_markers, "Admin")):
        monkeypatch.setattr(module, admin, type("Admin", (Fresh,), {}))
        monkeypatch.setattr(module, "Consumer", type("Consumer", (Fresh,), {}))
    return Fresh


@pytest.mark.parametrize("refused", ["create_topic", "partitions_for", ""])
def test_a_log_of_markers_that_cannot_be_read_leaves_no_client(client: type[Client], refused: str) -> None:
    client.refuses = refused
    if refused:
        with pytest.raises(KafkaTimeoutError):
            commit_markers.MarkerLog({}, "sink")
    else:
        commit_markers.MarkerLog({}, "sink").close()
    assert sorted(client.closed) == sorted(client.opened)


def test_a_view_closes_both_clients_even_if_one_of_them_fails(client: type[Client]) -> None:
    options: Any = read_options({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, is_stream=True)
    view = cluster.ClusterView(options)
    assert view.admin is view.admin
    assert view.consumer is view.consumer
    client.refuses = "close"
    with pytest.raises(KafkaTimeoutError):
        view.close()
    assert sorted(client.closed) == sorted(client.opened) == ["Admin", "Consumer"]
    client.refuses = ""
    assert view.admin is view.admin
    view.close()
    assert sorted(client.closed) == sorted(client.opened)
