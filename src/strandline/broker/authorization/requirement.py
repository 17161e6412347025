"""The column `authorization` of the table of APIs: what somebody must be allowed to do to get a response."""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.base.acls import AclOperation


class Requirement(NamedTuple):
    """One of these: an operation on the cluster, a rule that looks at a request's parts, a handler that does, none."""

    operation: AclOperation | None = None  # on the cluster, for the whole request
    rule: str = ""  # module and function in this package
    is_in_handler: bool = False  # the handler walks the request anyway, and checks on the way
    why_open: str = ""  # where everybody may


# The handler asks `services.authorizer` itself.
IN_HANDLER: Final = Requirement(is_in_handler=True)


def on_cluster(operation: AclOperation) -> Requirement:
    return Requirement(operation=operation)


def by_rule(rule: str) -> Requirement:
    return Requirement(rule=rule)


def open_to_all(why: str) -> Requirement:
    return Requirement(why_open=why)
