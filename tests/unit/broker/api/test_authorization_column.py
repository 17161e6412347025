"""Every API says who may ask for it, and what it says is carried out."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from strandline.base.acls import AclOperation
from strandline.broker.api.table import TABLE
from strandline.broker.authorization.node_authorizer import rule_for
from strandline.broker.authorization.requirement import Requirement
from strandline.broker.server.api_row import ApiRow, row

# Nobody is asked for rights before it is known who they are; nor the holder of a token, nor a client that tells
# what it measures.
OPEN = {17, 18, 36, 39, 40, 71, 72}


def test_a_row_without_the_column_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="access"):
        row(2)  # type: ignore[call-arg]


@pytest.mark.parametrize("each", TABLE.values(), ids=lambda each: each.name)
def test_every_row_says_exactly_one_thing(each: ApiRow) -> None:
    column = each.authorization
    said = [column.operation is not None, bool(column.rule), column.is_in_handler, bool(column.why_open)]
    assert said.count(True) == 1
    assert bool(column.why_open) == (each.key in OPEN)


@pytest.mark.parametrize("each", TABLE.values(), ids=lambda each: each.name)
def test_every_rule_is_there(each: ApiRow) -> None:
    assert callable(rule_for(each.authorization))
    if each.authorization.is_in_handler:
        source = inspect.getsource(import_module(f"strandline.broker.api.{each.module}"))
        assert "access_of(" in source or "services.authorizer" in source


@pytest.mark.parametrize("each", [row for row in TABLE.values() if row.authorization.operation])
def test_requests_of_nodes_need_cluster_action(each: ApiRow) -> None:
    if each.listener == "controller":
        assert each.authorization.operation == AclOperation.CLUSTER_ACTION


def test_a_requirement_that_says_nothing_is_noticed() -> None:
    with pytest.raises(AssertionError):
        rule_for(Requirement())
