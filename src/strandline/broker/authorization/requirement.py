"""The column `access` of the table of APIs: the operations that a user needs for a request."""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.base.acls import AclOperation


class Requirement(NamedTuple):
    """The requirement of an API: an operation on the cluster, a rule that checks a request's parts, a handler that
    does, or none."""

    operation: AclOperation | None = None  # needed on the cluster, for the whole request
    rule: str = ""  # names a module and a function in this package
    is_in_handler: bool = False  # the handler decodes the request by hand, and checks it meanwhile
    why_open: str = ""  # the reason why every user may


# The handler calls `services.authorizer` itself.
IN_HANDLER: Final = Requirement(is_in_handler=True)


def on_cluster(operation: AclOperation) -> Requirement:
    return Requirement(operation=operation)


def by_rule(rule: str) -> Requirement:
    return Requirement(rule=rule)


def open_to_all(why: str) -> Requirement:
    return Requirement(why_open=why)
