"""Clients that outlive the task which opened them: what is kept, for whom, and what is closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from strandline.spark.runtime.client_cache import ClientCache


class Client:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.tasks = 0
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def rest(client: Client) -> None:
    client.tasks += 1


def test_a_task_gets_the_client_of_the_task_before_if_the_settings_are_the_same() -> None:
    kept = ClientCache(Client, rest)
    with kept.use({"a": "1", "b": "2"}) as first:
        assert not first.tasks
    with kept.use({"b": "2", "a": "1"}) as second:
        assert second is first
    with kept.use({"a": "1"}) as other:
        assert other is not first
    assert (first.tasks, other.tasks) == (2, 1)
    kept.close()
    assert first.is_closed
    assert other.is_closed


def test_a_client_is_not_kept_behind_an_error_nor_if_it_cannot_rest() -> None:
    def restless(client: Client) -> None:
        raise RuntimeError("the broker is gone")

    kept = ClientCache(Client, rest)
    with pytest.raises(ValueError, match="no such row"), kept.use({}) as failed:
        raise ValueError("no such row")
    with kept.use({}) as next_one:
        assert next_one is not failed
    assert failed.is_closed
    unkept = ClientCache(Client, restless)
    with pytest.raises(RuntimeError, match="gone"), unkept.use({}) as client:
        pass
    assert client.is_closed


def test_a_reader_that_is_given_up_half_way_leaves_no_client() -> None:
    kept = ClientCache(Client, rest)
    used = []

    def rows() -> Any:
        with kept.use({}) as client:
            used.append(client)
            yield from range(10)

    reading = rows()
    assert next(reading) == 0
    reading.close()
    assert used[0].is_closed


def test_of_many_settings_the_longest_unused_is_closed() -> None:
    kept = ClientCache(Client, rest)
    opened = []
    for number in range(5):
        with kept.use({"n": number}) as client:
            opened.append(client)
    assert [client.is_closed for client in opened] == [True, False, False, False, False]
