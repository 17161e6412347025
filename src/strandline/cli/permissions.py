"""Says which operation a command needs, for users to whom the cluster does not permit it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode
from strandline.cli.exit_codes import NOT_PERMITTED
from strandline.cli.failures import CommandError

if TYPE_CHECKING:
    from strandline.client.admin.groups import GroupAdmin
    from strandline.client.admin.topics import TopicAdmin
    from strandline.client.errors import KafkaError

_RESOURCES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
}

# The operations on each kind of resource, by the words of the command. "*" is for any kind.
OPERATIONS: Final[dict[str, dict[str, str]]] = {
    "topics describe": {"topic": "DESCRIBE and DESCRIBE_CONFIGS", "cluster": "DESCRIBE"},
    "topics create": {"topic": "CREATE"},
    "topics alter": {"topic": "ALTER for partitions, ALTER_CONFIGS for settings"},
    "topics clone": {"topic": "DESCRIBE_CONFIGS, and CREATE for the copy"},
    "topics delete": {"topic": "DELETE"},
    "topics delete-records": {"topic": "DELETE"},
    "configs get": {"*": "DESCRIBE_CONFIGS"},
    "configs list": {"*": "DESCRIBE_CONFIGS"},
    "configs diff": {"*": "DESCRIBE_CONFIGS"},
    "configs set": {"*": "ALTER_CONFIGS"},
    "groups describe": {"*": "DESCRIBE"},
    "groups members": {"*": "DESCRIBE"},
    "groups lag": {"*": "DESCRIBE"},
    "groups reset-offsets": {"*": "READ"},
    "groups clone": {"*": "READ"},
    "groups delete": {"group": "DELETE"},
    "lag": {"*": "DESCRIBE"},
    "produce": {"topic": "WRITE", "cluster": "IDEMPOTENT_WRITE", "transactional id": "WRITE"},
    "consume": {"*": "READ"},
    "perf produce": {"topic": "WRITE", "cluster": "IDEMPOTENT_WRITE"},
    "perf consume": {"*": "READ"},
    "reassign plan": {"cluster": "DESCRIBE"},
    "reassign start": {"cluster": "DESCRIBE, ALTER and ALTER_CONFIGS", "topic": "ALTER_CONFIGS"},
    "reassign status": {"cluster": "DESCRIBE"},
    "reassign verify": {"cluster": "DESCRIBE and ALTER_CONFIGS", "topic": "ALTER_CONFIGS"},
    "reassign cancel": {"cluster": "DESCRIBE, ALTER and ALTER_CONFIGS", "topic": "ALTER_CONFIGS"},
    "elect-leaders": {"cluster": "ALTER"},
    "cluster status": {"cluster": "DESCRIBE", "topic": "DESCRIBE_CONFIGS"},
    "quorum describe": {"cluster": "DESCRIBE"},
    "quorum add": {"cluster": "ALTER"},
    "quorum remove": {"cluster": "ALTER"},
    "log-dirs": {"cluster": "DESCRIBE"},
    "features": {"cluster": "ALTER"},
    "acls list": {"cluster": "DESCRIBE"},
    "acls add": {"cluster": "ALTER"},
    "acls remove": {"cluster": "ALTER"},
    "users list": {"cluster": "DESCRIBE"},
    "users set": {"cluster": "ALTER"},
    "users remove": {"cluster": "ALTER"},
    "quotas list": {"cluster": "DESCRIBE_CONFIGS"},
    "quotas set": {"cluster": "ALTER_CONFIGS"},
    "quotas remove": {"cluster": "ALTER_CONFIGS"},
    "producers": {"topic": "READ"},
    "transactions describe": {"transactional id": "DESCRIBE"},
}


def name_missing_operation(options: argparse.Namespace, error: KafkaError) -> None:
    """Puts the operation that the command needs into the advice of an error of authorization; leaves other errors."""
    from strandline.client.admin.calls import PartialFailureError

    resource = _RESOURCES.get(ErrorCode(error.code)) if error.code in _RESOURCES else None
    words = " ".join(filter(None, (options.command, getattr(options, "action", None))))
    operations = OPERATIONS.get(words, {})
    needed = operations.get(resource or "", operations.get("*"))
    if resource is not None and needed is not None:
        if isinstance(error, PartialFailureError):
            first = next(iter(error.errors.values()))
            count = len(error.errors) + len(error.results)
            error.message = f"{len(error.errors)} of {count} failed, the first: {first.message}"
        error.advice = f"`{words}` needs {needed} on the {resource}; `strandline acls add` grants it"


async def check_topic_is_visible(admin: TopicAdmin, name: str) -> None:
    """Ends the command if this user may not know whether the topic exists."""
    from strandline.client.errors import AuthorizationError, KafkaError

    try:
        await admin.describe_topics([name])
    except AuthorizationError as error:
        raise _hidden("topic", name, error) from error
    except KafkaError:
        return  # the caller says that there is no such topic


async def check_group_is_visible(admin: GroupAdmin, name: str) -> None:
    """Ends the command if this user may not know whether the group exists."""
    from strandline.client.errors import AuthorizationError, KafkaError

    try:
        await admin.describe_groups([name])
    except AuthorizationError as error:
        raise _hidden("group", name, error) from error
    except KafkaError:
        return  # the caller says that there is no such group


def _hidden(resource: str, name: str, error: KafkaError) -> CommandError:
    return CommandError(
        f"{error.name}: this user needs DESCRIBE on the {resource} {name}, or there is no such {resource}; "
        "`strandline acls add` grants it",
        NOT_PERMITTED,
    )
